// What a kubelet without pods asks of its API server in its first minute, and in one at rest: each request by its name.
// runs: at rest
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { startTestApiServer, type TestApiServer } from '../../harness/api-server.ts';
import { connectClient } from '../../harness/connect-client.ts';
import { makeNodeFolder, removeNodeFolder } from '../../harness/node-folder.ts';
import { timePasses } from '../../harness/until.ts';
import { FrozenNode } from '../frozen/frozen-node.ts';
import { NetworkWire } from './network-wire.ts';

const NAME = 'rest';
const MINUTE = 60_000;

describe('a kubelet without pods', { skip: process.getuid?.() === 0 ? false : 'needs root' }, () => {
  let dir: string;
  let api: TestApiServer;
  let wire: NetworkWire;
  let node: FrozenNode;

  before(async () => {
    dir = await makeNodeFolder();
    api = await startTestApiServer(join(dir, 'api'));
    const client = await connectClient(api.adminKubeconfigPath);
    wire = new NetworkWire(api.port);
    await wire.start();
    const home = join(dir, 'n');
    mkdirSync(home);
    const flags = ['--node-status-update-frequency=10s'];
    node = new FrozenNode({ name: NAME, dir: home, api, client, apiPort: wire.port, statusReport: '5m', flags });
  });

  after(async () => {
    await node?.stop();
    await wire?.stop();
    await api?.stop();
    await removeNodeFolder(dir);
  });

  /** Requests answered within a minute from now on, by name. A watch is answered when it ends, so is not among them. */
  const minute = async (t: TestContext, from: number, bytes: { up: number; down: number }): Promise<number> => {
    await timePasses(MINUTE, 'measuring');
    const counts = new Map<string, number>();
    let all = 0;
    for (const { atMs, user, method, url } of await api.served()) {
      if (atMs < from || user !== `system:node:${NAME}`) continue;
      const key = `${method} ${url.replace(/[?&](timeoutSeconds|resourceVersion)=\d+/g, '')}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
      all++;
    }
    t.diagnostic(`bytes up and down: ${wire.bytes.up - bytes.up}, ${wire.bytes.down - bytes.down}`);
    for (const [request, times] of counts) t.diagnostic(`${times} x ${request}`);
    return all;
  };

  it('asks little in its first minute', async (t) => {
    const from = Date.now();
    await node.start();
    assert.ok((await minute(t, from, { up: 0, down: 0 })) <= 40);
  });

  it('renews its lease six times in a minute at rest, and tells nothing that has not changed', async (t) => {
    const requests = await minute(t, Date.now(), { ...wire.bytes });
    assert.ok(requests <= 8, `${requests} requests`);
  });
});
