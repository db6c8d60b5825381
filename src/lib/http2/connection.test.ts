// The client against Node's HTTP/2 server on a real socket: both directions with bodies larger than the windows, limits of the
// server, its ends and ours.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http2, {
  constants,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import { until } from '../../../test/harness/until.ts';
import { ClientConnection, type ConnectionOptions } from './connection.ts';
import { goAwayFrame } from './frames.ts';
import { fieldOf } from './hpack-decoder.ts';
import { encodeHeaders } from './hpack-encoder.ts';
import { HEAD, NO_SETTINGS, play, Told, WINDOWS } from './peer.fixture.ts';
import { ErrorCode } from './protocol-error.ts';

const root = mkdtempSync(join(tmpdir(), 'kts-http2-'));
after(() => rmSync(root, { recursive: true, force: true }));
let next = 0;

type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
type World = { connection: ClientConnection; sessions: ServerHttp2Session[]; log: string[] };

const headersOf = (path: string, more: readonly (readonly [string, string])[] = []): Buffer =>
  encodeHeaders([[':method', 'POST'], [':scheme', 'http'], [':path', path], [':authority', 'localhost'], ...more]);
const block = headersOf('/');

async function open(
  t: TestContext,
  answer: Answer,
  settings: http2.Settings = {},
  options: Partial<ConnectionOptions> = {},
): Promise<World> {
  const path = join(root, `${next++}.sock`);
  const server = http2.createServer({ settings, maxHeaderListPairs: 1000 });
  const sessions: ServerHttp2Session[] = [];
  server.on('session', (session) => {
    sessions.push(session);
    session.on('error', () => undefined);
  });
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on('error', () => undefined);
    answer(stream, headers);
  });
  server.listen(path);
  await once(server, 'listening');
  const socket = connect(path);
  await once(socket, 'connect');
  const log: string[] = [];
  const connection = ClientConnection.on(
    socket,
    { ...WINDOWS, ...options },
    {
      onReady: () => log.push('ready'),
      onRetired: () => log.push('retired'),
      onClose: () => log.push('closed'),
    },
  );
  await until('the settings', () => log.length > 0, 30_000, 1);
  t.after(() => {
    connection.destroy();
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { connection, sessions, log };
}

/** Gives everything back that came, when all of it is there. */
const echo: Answer = (stream, headers) => {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('end', () => {
    if (stream.destroyed) return;
    const given = Object.entries(headers).filter(([name]) => name.startsWith('x-'));
    stream.respond({ ':status': 200, ...Object.fromEntries(given) });
    stream.end(Buffer.concat(chunks));
  });
};

async function ask(connection: ClientConnection, body: Buffer | undefined, fields = block): Promise<Told> {
  const told = new Told();
  connection.request(body === undefined ? { block: fields } : { block: fields, body }, told);
  await until('the answer', () => told.isOver, 30_000, 1);
  return told;
}

const pattern = (bytes: number): Buffer => Buffer.from(Array.from({ length: bytes }, (_, i) => (i * 7) % 251));

describe('requests and answers', () => {
  it('any fields and any body come back', async (t) => {
    const { connection } = await open(t, echo);
    const fields = fc.uniqueArray(
      fc.tuple(fc.stringMatching(/^x-[a-z0-9-]{1,12}$/), fc.stringMatching(/^[!-~]{1,200}$/)),
      {
        maxLength: 10,
        selector: ([name]) => name,
      },
    );
    await fc.assert(
      fc.asyncProperty(fields, fc.uint8Array({ maxLength: 300 }), async (more, body) => {
        const told = await ask(connection, Buffer.from(body), headersOf('/', more));
        assert.deepEqual(told.log, body.length > 0 ? ['head 200', 'data', 'end'] : ['head 200', 'end']);
        assert.deepEqual(told.body, Buffer.from(body));
        for (const [name, value] of more) assert.equal(fieldOf(told.headers, name), value);
      }),
      { numRuns: 100 },
    );
  });

  it('header blocks of many frames, in both directions', async (t) => {
    const { connection } = await open(t, echo);
    const fields = Array.from({ length: 12 }, (_, i) => [`x-${i}`, `${i}`.repeat(3500)] as const);
    const told = await ask(connection, undefined, headersOf('/', fields));
    for (const [name, value] of fields) assert.equal(fieldOf(told.headers, name), value);
  });

  it('trailers, and trailers only', async (t) => {
    const { connection } = await open(t, (stream, headers) => {
      if (headers[':path'] === '/only')
        return stream.respond({ ':status': 200, 'grpc-status': '5' }, { endStream: true });
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end('body');
    });
    const both = await ask(connection, Buffer.from('x'));
    assert.deepEqual(both.log, ['head 200', 'data', 'trailers', 'end']);
    assert.equal(fieldOf(both.trailers, 'grpc-status'), '0');
    const only = await ask(connection, Buffer.from('x'), headersOf('/only'));
    assert.deepEqual(only.log, ['head 200', 'end']);
    assert.equal(fieldOf(only.headers, 'grpc-status'), '5');
  });

  it('an answer that does not wait for the request', async (t) => {
    const resets: number[] = [];
    const { connection } = await open(
      t,
      (stream) => {
        stream.on('close', () => resets.push(stream.rstCode));
        stream.respond({ ':status': 413 }, { endStream: true });
      },
      { initialWindowSize: 1000 },
    );
    const told = await ask(connection, Buffer.alloc(100_000));
    assert.deepEqual(told.log, ['head 413', 'end']);
    await until('the server is told', () => resets.length === 1);
    assert.equal(connection.active, 0);
  });

  it('a table of header fields whose size changes', async (t) => {
    const { connection, sessions } = await open(t, echo, { headerTableSize: 0 });
    for (const headerTableSize of [0, 4096, 100, 65_536, 0]) {
      assert.deepEqual((await ask(connection, Buffer.from('x'))).log, ['head 200', 'data', 'end']);
      const settled = once(sessions[0] as ServerHttp2Session, 'localSettings');
      sessions[0]?.settings({ headerTableSize });
      await settled;
    }
    assert.deepEqual((await ask(connection, Buffer.from('x'))).log, ['head 200', 'data', 'end']);
  });
});

describe('windows', () => {
  for (const [name, settings, options] of [
    ['as usual', {}, {}],
    ['of the server tiny', { initialWindowSize: 1000 }, {}],
    ['of the client tiny', {}, { streamWindow: 1000, connectionWindow: 70_000 }],
    ['of the client as the protocol has them', {}, { streamWindow: 65_535, connectionWindow: 65_535 }],
    ['and frames of another size', { maxFrameSize: 1_000_000 }, { streamWindow: 300_000, connectionWindow: 300_000 }],
  ] as const)
    it(`bodies much larger than them: ${name}`, async (t) => {
      const { connection } = await open(t, echo, settings, options);
      const body = pattern(1024 * 1024);
      const told = await Promise.all([1, 2].map(() => ask(connection, body)));
      for (const each of told) {
        assert.deepEqual(each.log, ['head 200', 'data', 'end']);
        assert.ok(each.body.equals(body));
      }
    });

  it('an answer that is not read is not sent either, and others are', async (t) => {
    const size = 10 * WINDOWS.streamWindow;
    let sent = 0;
    const { connection } = await open(t, (stream, headers) => {
      if (headers[':path'] !== '/large') return echo(stream, headers);
      stream.respond({ ':status': 200 });
      const chunk = pattern(10_000);
      const pour = (): void => {
        while (sent < size) {
          sent += chunk.length;
          if (!stream.write(chunk)) return void stream.once('drain', pour);
        }
        stream.end();
      };
      pour();
    });
    const told = new Told();
    const stream = connection.request({ block: headersOf('/large'), isPaused: true }, told);
    await until('the window is full', () => stream.receiveWindow === 0, 30_000, 1);
    assert.deepEqual(told.log, ['head 200']);
    assert.equal((await ask(connection, Buffer.from('x'))).body.toString(), 'x');
    stream.resume();
    await until('some', () => told.chunks.length > 0);
    stream.pause();
    stream.resume();
    await until('the end', () => told.isOver);
    assert.equal(told.body.length, size);
    assert.deepEqual(told.log, ['head 200', 'data', 'end']);
  });

  it('one that stays closed holds nobody up who has had enough', async (t) => {
    const { connection, sessions } = await open(t, echo, { initialWindowSize: 0 });
    const told = new Told();
    const stream = connection.request({ block, body: Buffer.from('x') }, told);
    assert.deepEqual((await ask(connection, undefined)).log, ['head 200', 'end']);
    stream.reset(ErrorCode.Cancel);
    assert.deepEqual(told.log, []);
    const waiting = ask(connection, Buffer.from('later'));
    sessions[0]?.settings({ initialWindowSize: 10 });
    assert.equal((await waiting).body.toString(), 'later');
  });
});

describe('limits of the server', () => {
  it('one stream at a time: the others wait for their turn', async (t) => {
    let most = 0;
    let open_ = 0;
    const { connection } = await open(
      t,
      (stream, headers) => {
        most = Math.max(most, ++open_);
        stream.on('close', () => open_--);
        echo(stream, headers);
      },
      { maxConcurrentStreams: 1 },
    );
    assert.equal(connection.limit, 1);
    const dropped = new Told();
    const answers = Array.from({ length: 20 }, (_, i) => ask(connection, Buffer.from(String(i))));
    const stream = connection.request({ block }, dropped);
    assert.equal(connection.active, 21);
    stream.reset(ErrorCode.Cancel); // it never got its turn
    assert.deepEqual(
      (await Promise.all(answers)).map((told) => Number(told.body)),
      Array.from({ length: 20 }, (_, i) => i),
    );
    assert.equal(most, 1);
    assert.deepEqual(dropped.log, []);
  });

  it('a server that does not read takes no memory of those who give up', async () => {
    const { connection, peer, written } = play();
    peer.send(NO_SETTINGS);
    peer.freeze();
    const body = Buffer.alloc(10_000);
    for (let i = 0; i < 10_000; i++) connection.request({ block, body }, new Told()).reset(ErrorCode.Cancel);
    const bytes = written.reduce((sum, chunk) => sum + chunk.length, 0);
    assert.ok(bytes < 500_000, `${bytes} bytes were written`);
    assert.equal(connection.active, 0);
  });
});

describe('ends', () => {
  it('a reset by either side', async (t) => {
    const codes: number[] = [];
    const { connection } = await open(t, (stream, headers) => {
      stream.on('close', () => codes.push(stream.rstCode));
      if (headers[':path'] === '/reset') stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    });
    const lost = await ask(connection, undefined, headersOf('/reset'));
    assert.deepEqual([lost.log, lost.code], [['lost'], ErrorCode.Internal]);
    assert.match(String(lost.error), /Stream closed with error code INTERNAL_ERROR/);
    const told = new Told();
    const stream = connection.request({ block }, told);
    await until('the first reset', () => codes.length === 1);
    stream.reset(ErrorCode.Cancel);
    await until('the second', () => codes.length === 2);
    assert.deepEqual(codes, [constants.NGHTTP2_INTERNAL_ERROR, constants.NGHTTP2_CANCEL]);
    assert.deepEqual(told.log, []);
  });

  it('a server that closes in good order: what is under way finishes, nothing more is taken', async (t) => {
    const held: ServerHttp2Stream[] = [];
    const { connection, sessions, log } = await open(t, (stream) => void held.push(stream));
    const answer = ask(connection, undefined);
    await until('the request', () => held.length === 1);
    sessions[0]?.goaway(0);
    await until('the farewell', () => connection.isRetired);
    assert.throws(() => connection.request({ block }, new Told()), /takes no more requests/);
    held[0]?.respond({ ':status': 200 });
    held[0]?.end('done');
    assert.equal((await answer).body.toString(), 'done');
    await until('the end', () => connection.isClosed);
    assert.deepEqual(log, ['ready', 'retired', 'closed']);
  });

  it('a farewell that leaves some requests out, and one with an error', async () => {
    const { connection, peer, closing } = play();
    const told = [new Told(), new Told(), new Told()];
    for (const each of told) connection.request({ block }, each);
    const farewell = goAwayFrame(ErrorCode.None);
    farewell.writeUInt32BE(1, 9);
    peer.send(NO_SETTINGS, HEAD, farewell);
    await until('the farewell', () => closing.log.includes('retired'));
    assert.deepEqual(
      told.map(({ log, code }) => [log.join(), code]),
      [
        ['head 200', -1],
        ['lost', ErrorCode.RefusedStream],
        ['lost', ErrorCode.RefusedStream],
      ],
    );
    const last = goAwayFrame(ErrorCode.EnhanceYourCalm);
    last.writeUInt32BE(1, 9);
    peer.send(last);
    await until('the end', () => connection.isClosed);
    assert.match(String(closing.error), /closed the connection with ENHANCE_YOUR_CALM/);
    assert.equal(told[0]?.error, closing.error);
  });

  it('a connection that breaks, and one that we close', async (t) => {
    let requests = 0;
    const { connection, sessions, log } = await open(t, () => void requests++);
    const told = new Told();
    connection.request({ block }, told);
    await until('the request', () => requests === 1);
    sessions[0]?.socket.destroy();
    await until('the end', () => told.isOver);
    assert.deepEqual([told.log, told.code], [['lost'], ErrorCode.Cancel]);
    assert.deepEqual(log, ['ready', 'retired', 'closed']);

    const other = await open(t, echo);
    const answer = ask(other.connection, Buffer.from('x'));
    other.connection.close();
    assert.equal((await answer).body.toString(), 'x');
    await until('the end', () => other.log.includes('closed'));
    await until('the server sees it', () => other.sessions[0]?.destroyed === true);

    const third = await open(t, () => undefined);
    const reason = new Error('enough');
    const asked = ask(third.connection, undefined);
    third.connection.destroy(reason);
    assert.equal((await asked).error, reason);
  });

  it('a ping is answered', async (t) => {
    const { connection, sessions } = await open(t, echo);
    await new Promise<void>((resolve) => connection.ping(resolve));
    await new Promise<void>((resolve) => void sessions[0]?.ping(() => resolve()));
  });
});
