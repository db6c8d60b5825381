// Our gRPC against grpc-go, both ways. A grpc-go server measures the line with pings while it reads a large request; runtimes,
// plugins and drivers all do.
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import type { Rpc } from '../../src/lib/grpc/rpc.ts';
import { GrpcServer } from '../../src/lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../../src/lib/grpc/status.ts';
import type { MessageType } from '../../src/lib/proto/codec.ts';
import { noGoPeer, startPeer, startServer, stopPeer } from './go-peer.ts';
import { cases, Dice, SEED } from './random.ts';

type Bytes = { readonly value: Uint8Array };
const Bytes: MessageType<Bytes> = {
  spec: { name: 'google.protobuf.BytesValue', fields: () => [{ no: 1, name: 'value', type: 'bytes' }] },
};
const rpc = (method: string): Rpc<Bytes, Bytes> => ({ path: `/wire.Peer/${method}`, request: Bytes, response: Bytes });
const KIB = 1024;
const MIB = 1024 * KIB;
const DEADLINE_MS = 60_000;
const never = new AbortController().signal;
const wish = (wanted: object): Bytes => ({ value: Buffer.from(JSON.stringify(wanted)) });

const root = mkdtempSync(join(tmpdir(), 'kts-wire-'));
after(() => rmSync(root, { recursive: true, force: true }));

const channelTo = (socketPath: string): GrpcChannel =>
  new GrpcChannel(systemClock, { target: { socketPath }, maxReceiveBytes: 32 * MIB });

async function echoes(channel: GrpcChannel, value: Buffer): Promise<void> {
  const answer = await channel.unary(rpc('Echo'), { value }, { signal: never, deadlineMs: DEADLINE_MS });
  assert.ok(Buffer.from(answer.value).equals(value), `${value.length} bytes came back otherwise`);
}

describe(`our channel and a grpc-go server, SEED=${SEED}`, { skip: noGoPeer }, () => {
  const socketPath = join(root, 'go.sock');
  let server: ChildProcess;
  before(async () => (server = await startServer(socketPath)));
  after(() => stopPeer(server));

  async function onChannel(run: (channel: GrpcChannel) => Promise<void>): Promise<void> {
    const channel = channelTo(socketPath);
    try {
      await run(channel);
    } finally {
      channel.close();
    }
  }

  for (const [count, bytes, rounds] of [
    [1, 64 * KIB, 3],
    [1, 256 * KIB, 3],
    [1, MIB, 3],
    [1, 4 * MIB, 2],
    [1, 8 * MIB, 2],
    [1, 16 * MIB, 1],
    [8, MIB, 1],
    [30, 200 * KIB, 1],
    [100, 30 * KIB, 1],
  ] as const)
    it(`${count} requests of ${bytes / KIB} KiB at once, beside calls that sleep`, async () => {
      const body = Buffer.alloc(bytes, 'body');
      for (let round = 0; round < rounds; round++)
        await onChannel(async (channel) => {
          const stop = new AbortController();
          const ends: string[] = [];
          const asleep = [1, 2, 3].map(() =>
            channel
              .unary(rpc('Sleep'), wish({}), { signal: stop.signal })
              .catch((err: unknown) => ends.push(String(err))),
          );
          await Promise.all(Array.from({ length: count }, () => echoes(channel, body)));
          await echoes(channel, Buffer.from('the same connection'));
          assert.deepEqual(ends, []);
          stop.abort(new Error('enough'));
          await Promise.all(asleep);
          assert.deepEqual(ends, ['Error: enough', 'Error: enough', 'Error: enough']);
        });
    });

  it('requests of any size, many at once', () =>
    onChannel(async (channel) => {
      const dice = new Dice();
      let left = cases(300);
      const work = async (): Promise<void> => {
        while (left-- > 0)
          await echoes(channel, Buffer.alloc(dice.one([10, 20_000, 70_000, 400_000]) * dice.next(), 'x'));
      };
      await Promise.all(Array.from({ length: 20 }, work));
    }));

  it('a server that takes two calls at a time gets all of them', async (t) => {
    const path = join(root, 'two.sock');
    const small = await startServer(path, 2);
    t.after(() => stopPeer(small));
    for (let round = 0; round < 5; round++) {
      const channel = channelTo(path);
      await Promise.all(Array.from({ length: 40 }, (_, i) => echoes(channel, Buffer.alloc(i * 1000))));
      channel.close();
    }
  });

  it('statuses with any text, without and after an answer', () =>
    onChannel(async (channel) => {
      const dice = new Dice();
      const letters = ['a', ' ', '%', '%41', '\n', '\r', '\0', 'ü', '日本', '😀', '"', '\u2028', '~', '\x7f'];
      for (let i = cases(100); i > 0; i--) {
        const code = 1 + dice.below(16);
        const text = dice.list(30, () => dice.one(letters)).join('');
        const method = dice.one(['Fail', 'FailLate']);
        const call = channel.unary(rpc(method), wish({ Code: code, Text: text }), {
          signal: never,
          deadlineMs: DEADLINE_MS,
        });
        await assert.rejects(call, { code, message: text }, JSON.stringify(text));
      }
    }));

  it('streams, whole and in part', () =>
    onChannel(async (channel) => {
      const dice = new Dice();
      for (let i = cases(20); i > 0; i--) {
        const wanted = { Count: dice.below(300), Size: dice.one([0, 5, 300, dice.below(20_000)]) };
        const stop = new AbortController();
        const enough = dice.next() < 0.3 ? dice.below(wanted.Count) : wanted.Count;
        const got: Uint8Array[] = [];
        const stream = channel.serverStream(rpc('Many'), wish(wanted), { signal: stop.signal }, ({ value }) => {
          if (got.push(value) > enough) stop.abort(new Error('enough'));
        });
        if (enough === wanted.Count) await stream;
        else await assert.rejects(stream, /enough/);
        got.forEach((value, n) => assert.ok(Buffer.from(value).equals(Buffer.alloc(wanted.Size, 97 + (n % 26)))));
        assert.equal(got.length, enough === wanted.Count ? wanted.Count : enough + 1);
      }
      await echoes(channel, Buffer.from('the same connection'));
    }));

  it('deadlines and fields reach it', () =>
    onChannel(async (channel) => {
      const options = { signal: never, deadlineMs: 50_000, metadata: { 'x-field': 'value' } };
      const answer = await channel.unary(rpc('Facts'), wish({}), options);
      const { fields, leftMs } = JSON.parse(Buffer.from(answer.value).toString()) as {
        fields: Record<string, string[]>;
        leftMs: number;
      };
      assert.deepEqual(fields['x-field'], ['value']);
      assert.ok(leftMs > 0 && leftMs <= 50_000, `${leftMs} ms`);
      const late = channel.unary(rpc('Sleep'), wish({}), { signal: never, deadlineMs: 100 });
      await assert.rejects(late, { code: GrpcCode.DeadlineExceeded });
    }));
});

describe('our server and a grpc-go client', { skip: noGoPeer }, () => {
  it('every call ends as it must', async (t) => {
    const server = new GrpcServer();
    const gone = Promise.withResolvers<void>();
    server.unary(rpc('Echo'), async (request) => request);
    server.unary(rpc('Fail'), async ({ value }) => {
      throw new GrpcError(GrpcCode.FailedPrecondition, Buffer.from(value).toString());
    });
    server.unary(rpc('Sleep'), (_, signal) => {
      signal.addEventListener('abort', () => gone.resolve());
      return new Promise<Bytes>(() => undefined);
    });
    server.serverStream(rpc('Many'), async (_, signal, send) => {
      for (let i = 0; i < 500 && !signal.aborted; i++) send({ value: Buffer.alloc(1000, 'm') });
    });
    const socketPath = join(root, 'ours.sock');
    await server.listen(socketPath);
    t.after(() => server.close());
    const peer = startPeer('call', socketPath);
    t.after(() => stopPeer(peer));
    let out = '';
    peer.stdout?.setEncoding('utf8').on('data', (text: string) => (out += text));
    const [code] = (await once(peer, 'close')) as [number | null];
    assert.equal(code, 0);
    await gone.promise;
    const told = out
      .trim()
      .split('\n')
      .map((line) => Object.values(JSON.parse(line) as object) as [string, string, string, number, number]);
    const shown = (text: string): string => (text.length > 100 ? `${text.length} characters` : text);
    for (const line of told) line[2] = shown(line[2]);
    const failed = (text: string, i: number): unknown[] => [`fail ${i}`, 'FailedPrecondition', shown(text), 0, 0];
    assert.deepEqual(told, [
      ...[0, 1, 16383, 16384, 65535, 65536, MIB, 3 * MIB].map((size) => [`echo ${size}`, 'OK', '', size, 0]),
      ['too long', 'ResourceExhausted', `grpc: received message larger than max (${5 * MIB + 5} vs. ${4 * MIB})`, 0, 0],
      ['unknown', 'Unimplemented', 'unknown method /wire.Peer/Nothing', 0, 0],
      ...['plain', '100% of it', 'two\nlines\r', 'ü 日本 😀', '\t"quoted"', 'ü'.repeat(4096)].map(failed),
      ['deadline', 'DeadlineExceeded', 'context deadline exceeded', 0, 0],
      ['stream', '', '', 500_000, 500],
      ['cancelled stream', 'Canceled', '', 0, 0],
      ['at last', 'OK', '', 5, 0],
    ]);
  });
});
