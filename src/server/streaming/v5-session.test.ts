// An exec session from end to end: a WebSocket client that writes its frames by hand, the session, and a runtime that is played by
// hand and speaks SPDY.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, ServerResponse } from 'node:http';
import { connect, createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { describe, it, type TestContext } from 'node:test';
import { until } from '../../../test/harness/until.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Exchange } from '../router.ts';
import { dataHead, FrameType, SpdyDecoder } from './spdy-frames.ts';
import { serveV5 } from './v5-session.ts';
import { closeFrame, Opcode } from './websocket-frames.ts';
import { masked } from './websocket.fixture.ts';

/** Streams in the order in which the session opens them. */
const Stream = { error: 1, stdin: 3, stdout: 5, resize: 7 } as const;
const HEAD_END = '\r\n\r\n';

/** The bytes that come after a head of HTTP. */
function afterHead(socket: Socket, onHead: () => void, onBytes: (bytes: Buffer) => void): void {
  let head = '';
  let isOver = false;
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    if (isOver) return onBytes(chunk);
    head += chunk.toString('latin1');
    const at = head.indexOf(HEAD_END);
    if (at < 0) return;
    isOver = true;
    onHead();
    onBytes(Buffer.from(head.slice(at + HEAD_END.length), 'latin1'));
  });
}

class Runtime {
  readonly server: Server;
  socket: Socket | undefined;
  opened = 0;
  readonly #streams = new Map<number, Buffer[]>();
  readonly ended = new Set<number>();

  constructor() {
    const decoder = new SpdyDecoder();
    this.server = createTcpServer((socket) => {
      this.socket = socket.setNoDelay(true);
      const answer = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n';
      afterHead(
        socket,
        () => socket.write(answer),
        (bytes) => {
          for (const event of decoder.push(bytes))
            if (event.kind === 'data') {
              this.#streams.set(event.streamId, [...(this.#streams.get(event.streamId) ?? []), event.payload]);
              if (event.fin) this.ended.add(event.streamId);
            } else if (event.type === FrameType.synStream) this.opened++;
        },
      );
    });
  }

  of(stream: number): string {
    return Buffer.concat(this.#streams.get(stream) ?? []).toString();
  }

  send(stream: number, payload: Buffer, fin: boolean): void {
    this.socket?.write(Buffer.concat([dataHead(stream, payload.length, fin), payload]));
  }
}

const listening = async (server: Server): Promise<number> => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
};

async function session(t: TestContext): Promise<{ runtime: Runtime; client: Socket; received: () => Buffer }> {
  const runtime = new Runtime();
  const url = `http://127.0.0.1:${await listening(runtime.server)}/exec/token`;
  const stop = new AbortController();
  const options = { stdin: true, stdout: true, stderr: false, tty: true };
  const server = createServer();
  const under: Promise<void>[] = [];
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const response = new ServerResponse(request);
    response.assignSocket(socket as Socket);
    const exchange = { request, response, upgrade: { socket, head }, signal: stop.signal, stop: stop.signal };
    under.push(serveV5({ clock: systemClock, idleMs: 0 }, exchange as unknown as Exchange, url, options));
  });
  const client = connect(await listening(server), '127.0.0.1').setNoDelay(true);
  t.after(async () => {
    stop.abort();
    client.destroy();
    runtime.socket?.destroy();
    runtime.server.close();
    server.close();
    await Promise.all(under);
  });
  let received = Buffer.alloc(0);
  afterHead(
    client,
    () => undefined,
    (bytes) => (received = Buffer.concat([received, bytes])),
  );
  const key = 'dGhlIHNhbXBsZSBub25jZQ==';
  client.write(
    `GET /exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n`,
  );
  await until('the streams', () => runtime.opened === 4, 30_000, 1);
  return { runtime, client, received: () => received };
}

const { binary, continuation } = Opcode;
const EMPTY = Buffer.alloc(0);
const message = (...bytes: readonly (number | string)[]): Buffer =>
  Buffer.concat(bytes.map((part) => (typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part))));

describe('the channel of a message is its first byte', () => {
  const size = '{"Width":80,"Height":24}';
  const rows: readonly (readonly [string, readonly Buffer[], string, string])[] = [
    ['in one frame', [masked(binary, message(0, 'B'))], 'AB', ''],
    [
      'in the second, when the first is empty',
      [masked(binary, EMPTY, false), masked(continuation, message(0, 'B'))],
      'AB',
      '',
    ],
    [
      'in the third, and the input goes on in the fourth',
      [
        masked(binary, EMPTY, false),
        masked(continuation, EMPTY, false),
        masked(continuation, message(0, 'B'), false),
        masked(continuation, message(0, 'C')),
      ],
      'AB\0C',
      '',
    ],
    [
      'after a resize, too',
      [
        masked(binary, message(4, size)),
        masked(binary, EMPTY, false),
        masked(continuation, message(0, 'B')),
        masked(binary, EMPTY, false),
        masked(continuation, message(4, size)),
      ],
      'AB',
      `${size}\n${size}\n`,
    ],
    ['alone in its frame', [masked(binary, message(0), false), masked(continuation, message('B'))], 'AB', ''],
    ['and a message without one is none', [masked(binary, EMPTY), masked(binary, message(0, 'B'))], 'AB', ''],
    [
      'also in parts',
      [masked(binary, EMPTY, false), masked(continuation, EMPTY), masked(binary, message(0, 'B'))],
      'AB',
      '',
    ],
  ];
  for (const [name, frames, input, resizes] of rows)
    it(name, async (t) => {
      const { runtime, client } = await session(t);
      client.write(Buffer.concat([masked(binary, message(0, 'A')), ...frames, masked(binary, message(255, 0))]));
      await until('the end of the input', () => runtime.ended.has(Stream.stdin), 30_000, 1);
      assert.deepEqual([runtime.of(Stream.stdin), runtime.of(Stream.resize)], [input, resizes]);
    });
});

describe("a command's end", () => {
  it('is told with the letters that it has, wherever the text was cut', async (t) => {
    const text = 'exec "ü日本😀": not found';
    const said = Buffer.from(JSON.stringify({ status: 'Failure', reason: 'InternalError', message: text }));
    const { runtime, received } = await session(t);
    for (const byte of said) runtime.send(Stream.error, Buffer.from([byte]), false);
    runtime.send(Stream.error, EMPTY, true);
    runtime.send(Stream.stdout, EMPTY, true);
    await until('the close', () => received().includes(closeFrame(1000)), 30_000, 1);
    assert.match(
      received().toString(),
      new RegExp(`"message":"Internal error occurred: ${JSON.stringify(text).slice(1, -1).replaceAll('\\', '\\\\')}"`),
    );
  });

  it('is cut at 64 KiB of what the runtime says', async (t) => {
    const { runtime, received } = await session(t);
    runtime.send(Stream.error, Buffer.alloc(100_000, 'x'), true);
    runtime.send(Stream.stdout, EMPTY, true);
    await until('the close', () => received().includes(closeFrame(1000)), 30_000, 1);
    assert.equal(/message":"[^"]*: (x+)"/.exec(received().toString())?.[1]?.length, 65_536);
  });
});

describe('a client that closes', () => {
  for (const [name, payload, code] of [
    ['without a code', '', 1000],
    ['in good order', '03e8', 1000],
    ['because it goes away', '03e9', 1001],
    ['with a code of its own', '0fa0', 4000],
    ['with a code that is none', '03ed', 1002],
    ['with a reason that is not UTF-8', '03e8ff', 1007],
  ] as const)
    it(`${name} is answered with ${code}`, async (t) => {
      const { client, received } = await session(t);
      client.write(masked(Opcode.close, Buffer.from(payload, 'hex')));
      await until('the answer', () => received().includes(closeFrame(code)), 30_000, 1);
    });
});
