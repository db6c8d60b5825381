// Every recorded request to the Go kubelet's ports, sent to ours on a real node: same status, same headers, same body.
// runs: gate
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openWebSocket, send, TestWebSocket, type Target } from '../contracts/server/http-client.ts';
import { createNamespace, startPod, startServerNode, type ServerNode } from '../contracts/server/server-node.ts';

type Recorded = {
  readonly port: string;
  readonly method: string;
  readonly path: string;
  readonly auth?: false;
  readonly requestHeaders?: Readonly<Record<string, string>>;
  readonly requestBody?: string;
  readonly status: number;
  readonly contentType?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly websocket?: undefined;
};
type RecordedSocket = {
  readonly websocket: string;
  readonly protocols: readonly string[];
  readonly status: number;
  readonly protocol?: string;
  readonly frames?: readonly { readonly binary?: boolean; readonly hex?: string; readonly text?: string }[];
  readonly closeCode?: number;
};

const file = join(import.meta.dirname, '..', 'golden', 'http', 'responses.jsonl');
const rows = readFileSync(file, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Recorded | RecordedSocket);

/** Times and the runtime's own random names. */
const tidy = (text: string): string =>
  text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/g, '<time>').replace(/[0-9a-f]{64}/g, '<id>');

describe('recorded requests', { skip: process.getuid?.() !== 0 }, () => {
  let server: ServerNode;
  before(async () => {
    server = await startServerNode();
    await createNamespace(server.node);
    await startPod(server.node, 'simple');
  });
  after(() => server.stop());

  const targetOf = (row: Recorded): Target => {
    if (row.port === '10255') return server.readOnly;
    if (row.port === '10248') return server.health;
    const { as: _, ...anybody } = server.main;
    return row.auth === false ? anybody : server.main;
  };

  for (const row of rows) {
    if (row.websocket !== undefined) continue;
    const note = row.auth === false ? ' (no certificate)' : '';
    it(`${row.port} ${row.method} ${row.path}${note} ${row.requestBody ?? ''}`, async () => {
      const got = await send(targetOf(row), row.method, row.path, {
        headers: row.requestHeaders ?? {},
        ...(row.requestBody === undefined ? {} : { body: row.requestBody }),
      });
      assert.equal(got.status, row.status, got.body);
      assert.equal(got.headers['content-type'], row.contentType);
      for (const name of ['x-content-type-options', 'allow', 'location', 'www-authenticate'])
        assert.equal(got.headers[name], row.headers[name], name);
      if (row.headers['transfer-encoding'] !== undefined) assert.equal(got.headers['transfer-encoding'], 'chunked');
      if (row.body !== undefined) assert.equal(tidy(got.body), tidy(row.body));
    });
  }

  for (const row of rows) {
    if (row.websocket === undefined) continue;
    it(`WebSocket ${row.protocols.join(',')} ${row.websocket.slice(0, 40)}`, async () => {
      const opened = await openWebSocket(server.main, row.websocket, row.protocols);
      if (!(opened instanceof TestWebSocket)) return assert.equal(opened.status, row.status);
      const code = await opened.closed;
      assert.equal(row.status, 101);
      // The recording client gave up where the server chose a protocol unasked.
      if (row.protocols.length === 0) return;
      assert.equal(opened.protocol, row.protocol);
      assert.equal(code, row.closeCode);
      const got = opened.frames.filter((f) => f.opcode < 8).map((f) => f.payload);
      const want = (row.frames ?? []).map((f) => Buffer.from(f.hex ?? '', 'hex'));
      // The order between stdout and stderr is chance; recorded bytes are cut short.
      const starts = (list: readonly Buffer[]): string[] => list.map((b) => b.subarray(0, 6).toString('hex')).sort();
      assert.deepEqual(starts(got), starts(want));
      assert.equal(got[0]?.toString('hex'), want[0]?.toString('hex'), 'the first frame opens the channel');
      const status = row.frames?.at(-1)?.text ?? '';
      if (row.protocol === 'v5.channel.k8s.io') assert.ok(opened.text(3).startsWith(status), opened.text(3));
    });
  }
});
