// What our gRPC server answers, read with our channel: statuses of any text.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../clock.ts';
import type { MessageType } from '../proto/codec.ts';
import { GrpcChannel } from './channel.ts';
import { GrpcServer } from './server.ts';
import { GrpcCode, GrpcError } from './status.ts';

const Text: MessageType<{ text: string }> = {
  spec: { name: 't.Text', fields: () => [{ no: 1, name: 'text', type: 'string' }] },
};
const ECHO = { path: '/t.S/Echo', request: Text, response: Text };
const FAIL = { path: '/t.S/Fail', request: Text, response: Text };
const root = mkdtempSync(join(tmpdir(), 'kts-grpc-'));
const socketPath = join(root, 's.sock');
const server = new GrpcServer();
const channel = new GrpcChannel(systemClock, { target: { socketPath } });
const signal = new AbortController().signal;
let thrown: unknown;

before(async () => {
  server.unary(FAIL, async () => {
    throw thrown;
  });
  await server.listen(socketPath);
});
after(async () => {
  channel.close();
  await server.close();
  rmSync(root, { recursive: true });
});

it('a request that is too long is refused', async (t) => {
  const path = join(root, 'small.sock');
  const small = new GrpcServer({ maxRequestBytes: 1000 });
  small.unary(ECHO, async ({ text }) => ({ text }));
  server.unary(ECHO, async ({ text }) => ({ text }));
  await small.listen(path);
  const other = new GrpcChannel(systemClock, { target: { socketPath: path } });
  t.after(() => {
    other.close();
    return small.close();
  });
  const options = { signal, deadlineMs: 30_000 };
  const refused = { code: GrpcCode.ResourceExhausted, message: /^grpc: received message larger than max/ };
  const text = (size: number): { text: string } => ({ text: 'x'.repeat(size) });
  assert.equal((await other.unary(ECHO, text(900), options)).text.length, 900);
  await assert.rejects(other.unary(ECHO, text(1000), options), refused);
  assert.equal((await channel.unary(ECHO, text(4_000_000), options)).text.length, 4_000_000);
  await assert.rejects(channel.unary(ECHO, text(4 * 1024 * 1024), options), refused);
});

describe('a handler that fails', () => {
  const failed = (text: string): GrpcError => new GrpcError(GrpcCode.NotFound, text);
  const longest = 'ü'.repeat(4096);
  const rows: readonly (readonly [string, unknown, number, string])[] = [
    ['a plain text', failed('no such device'), GrpcCode.NotFound, 'no such device'],
    ['letters, signs and lines', failed('100% "ü 日本 😀"\r\n\tend'), GrpcCode.NotFound, '100% "ü 日本 😀"\r\n\tend'],
    ['an error of another kind', new RangeError('out'), GrpcCode.Unknown, 'out'],
    ['something else', 'only text', GrpcCode.Unknown, 'only text'],
    ['half a surrogate pair', failed('😀'.slice(0, 1)), GrpcCode.NotFound, '\ufffd'],
    [
      'half a pair at the end of what is kept',
      failed(`${'x'.repeat(4095)}😀`),
      GrpcCode.NotFound,
      `${'x'.repeat(4095)}\ufffd`,
    ],
    ['a long text', failed('ü'.repeat(70_000)), GrpcCode.NotFound, longest],
    ['a very long text', failed('ü'.repeat(2_000_000)), GrpcCode.NotFound, longest],
  ];
  for (const [name, err, code, message] of rows)
    it(name, async () => {
      thrown = err;
      await assert.rejects(channel.unary(FAIL, { text: '' }, { signal, deadlineMs: 30_000 }), { code, message });
    });
});
