// The channel on real sockets, with servers that are played by hand: calls that a server has not seen are sent again, others are
// not.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import { systemClock } from '../clock.ts';
import {
  Flag,
  FrameSplitter,
  FrameType,
  goAwayFrame,
  PREFACE,
  resetFrame,
  Setting,
  settingsFrame,
} from '../http2/frames.ts';
import { data, frameOf, NO_SETTINGS } from '../http2/peer.fixture.ts';
import { encodeHeaders } from '../http2/hpack-encoder.ts';
import { ErrorCode } from '../http2/protocol-error.ts';
import type { MessageType } from '../proto/codec.ts';
import { GrpcChannel, type ChannelOptions } from './channel.ts';
import { frame } from './frame.ts';
import { GrpcCode } from './status.ts';

type Text = { text: string };
const Text: MessageType<Text> = {
  spec: { name: 't.Text', fields: () => [{ no: 1, name: 'text', type: 'string' }] },
} as MessageType<Text>;
const ECHO = { path: '/t.S/Echo', request: Text, response: Text };
const never = new AbortController().signal;

const root = mkdtempSync(join(tmpdir(), 'kts-channel-'));
after(() => rmSync(root, { recursive: true, force: true }));
let next = 0;

const HEAD = encodeHeaders([
  [':status', '200'],
  ['content-type', 'application/grpc'],
]);
const STATUS_OK = encodeHeaders([['grpc-status', '0']]);
const head = (stream: number): Buffer => frameOf(FrameType.Headers, Flag.EndHeaders, stream, HEAD);
/** An answer without text. */
const answer = (stream: number): Buffer =>
  Buffer.concat([
    head(stream),
    data(stream, frame(Buffer.alloc(0))),
    frameOf(FrameType.Headers, Flag.EndHeaders | Flag.EndStream, stream, STATUS_OK),
  ]);
const refusal = (stream: number): Buffer => resetFrame(stream, ErrorCode.RefusedStream);
function farewell(lastStream: number): Buffer {
  const out = goAwayFrame(ErrorCode.None);
  out.writeUInt32BE(lastStream, 9);
  return out;
}

type Heard = { readonly socket: Socket; readonly connection: number; readonly stream: number; readonly nth: number };

/** A server that sends its settings and gives each request, when all of it is there, to `hear`. */
async function serve(
  t: TestContext,
  hear: (heard: Heard) => void,
  settings = NO_SETTINGS,
): Promise<{ channel: GrpcChannel; heard: Heard[] }> {
  const path = join(root, `${next++}.sock`);
  const heard: Heard[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    const connection = ++connections;
    const splitter = new FrameSplitter((type, flags, stream) => {
      if (type !== FrameType.Data || (flags & Flag.EndStream) === 0) return;
      const one = { socket, connection, stream, nth: heard.length + 1 };
      heard.push(one);
      hear(one);
    });
    let missing = PREFACE.length;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      const skipped = Math.min(missing, chunk.length);
      missing -= skipped;
      splitter.push(chunk.subarray(skipped));
    });
    if (settings.length > 0) socket.write(settings);
  });
  server.listen(path);
  await once(server, 'listening');
  const channel = channelTo(path);
  t.after(() => {
    channel.close();
    for (const { socket } of heard) socket.destroy();
    server.close();
  });
  return { channel, heard };
}

const channelTo = (socketPath: string, more: Partial<ChannelOptions> = {}): GrpcChannel =>
  new GrpcChannel(systemClock, { target: { socketPath }, ...more });
const call = (channel: GrpcChannel, deadlineMs = 30_000): Promise<Text> =>
  channel.unary(ECHO, { text: 'x' }, { signal: never, deadlineMs });

describe('calls that the server has not seen', () => {
  it('wait for its settings, which say how many it takes', async (t) => {
    let open = 0;
    let most = 0;
    const limit = settingsFrame([[Setting.MaxConcurrentStreams, 2]]);
    const hear = ({ socket, stream }: Heard): void => {
      most = Math.max(most, ++open);
      setImmediate(() => {
        open--;
        socket.write(answer(stream));
      });
    };
    const { channel, heard } = await serve(t, hear, limit);
    await Promise.all(Array.from({ length: 20 }, () => call(channel)));
    assert.deepEqual([most, heard.length], [2, 20]);
  });

  it('are sent again when it refuses them', async (t) => {
    const { channel, heard } = await serve(t, ({ socket, stream, nth }) =>
      socket.write(nth === 1 ? refusal(stream) : answer(stream)),
    );
    assert.deepEqual(await call(channel), { text: '' });
    assert.deepEqual(
      heard.map(({ connection, stream }) => [connection, stream]),
      [
        [1, 1],
        [1, 3],
      ],
    );
  });

  it('are sent on another connection when it closes this one ahead of them', async (t) => {
    const limit = settingsFrame([[Setting.MaxConcurrentStreams, 2]]);
    const { channel, heard } = await serve(
      t,
      ({ socket, connection, stream }) => {
        if (connection > 1) socket.write(answer(stream));
        else if (stream === 3) socket.write(Buffer.concat([farewell(1), answer(1)]));
      },
      limit,
    );
    await Promise.all([1, 2, 3].map(() => call(channel)));
    const seen = heard.map(({ connection, stream }) => `${connection}/${stream}`);
    assert.deepEqual(seen.sort(), ['1/1', '1/3', '2/1', '2/3']);
  });

  it('fail in the end where it never takes them', async (t) => {
    const { channel, heard } = await serve(t, ({ socket, stream }) => socket.write(refusal(stream)));
    await assert.rejects(call(channel), { code: GrpcCode.Unavailable, message: /REFUSED_STREAM/ });
    assert.equal(heard.length, 5);
  });

  it('are not sent again after the deadline, by a caller that gave up, or on a closed channel', async (t) => {
    const held: Heard[] = [];
    const { channel, heard } = await serve(t, (one) => void held.push(one));
    await assert.rejects(call(channel, 50), { code: GrpcCode.DeadlineExceeded });
    const stop = new AbortController();
    const asked = channel.unary(ECHO, { text: 'x' }, { signal: stop.signal });
    stop.abort(new Error('enough'));
    await assert.rejects(asked, /enough/);
    for (const { socket, stream } of held) socket.write(refusal(stream));
    const under = call(channel);
    while (heard.length < 3) await new Promise((resolve) => void setImmediate(resolve));
    channel.close();
    await assert.rejects(under, { code: GrpcCode.Unavailable });
    assert.equal(heard.at(-1)?.connection, 1);
  });
});

describe('calls that the server may have seen are not sent again', () => {
  const rows: readonly (readonly [string, (heard: Heard) => void, number])[] = [
    [
      'refused after its head',
      ({ socket, stream }) => void socket.write(Buffer.concat([head(stream), refusal(stream)])),
      14,
    ],
    ['the connection is lost', ({ socket }) => void socket.destroy(), 14],
    ['reset otherwise', ({ socket, stream }) => void socket.write(resetFrame(stream, ErrorCode.Internal)), 13],
  ];
  for (const [name, hear, code] of rows)
    it(name, async (t) => {
      const { channel, heard } = await serve(t, hear);
      await assert.rejects(call(channel), { code });
      assert.equal(heard.length, 1);
    });
});

it('a caller that has had enough gets no more messages, also of the same frame', async (t) => {
  const message = frame(Buffer.alloc(0));
  const { channel } = await serve(t, ({ socket, stream }) =>
    socket.write(Buffer.concat([head(stream), data(stream, Buffer.concat([message, message, message]))])),
  );
  const stop = new AbortController();
  let messages = 0;
  const stream = channel.serverStream(ECHO, { text: 'x' }, { signal: stop.signal }, () => {
    messages++;
    stop.abort(new Error('enough'));
  });
  await assert.rejects(stream, /enough/);
  assert.equal(messages, 1);
});

describe('an answer that is too long', () => {
  it('is refused by its length, above 4 MiB where nothing else was said', async (t) => {
    const { channel } = await serve(t, ({ socket, stream, nth }) => {
      const length = Buffer.from([0, 0, 0, 0, 0]);
      length.writeUInt32BE(4 * 1024 * 1024 + nth, 1);
      socket.write(Buffer.concat([head(stream), data(stream, length)]));
    });
    const refused = (size: number, most: number): object => ({
      code: GrpcCode.ResourceExhausted,
      message: `grpc: received message larger than max (${size} vs. ${most})`,
    });
    await assert.rejects(call(channel), refused(4_194_305, 4_194_304));
    const more = { signal: never, maxReceiveBytes: 4_194_305 };
    await assert.rejects(channel.unary(ECHO, { text: 'x' }, more), refused(4_194_306, 4_194_305));
  });
});

describe('what broke a call without a status of the server', () => {
  const terminated = 'stream terminated by RST_STREAM with error code: ';
  const resets: readonly (readonly [keyof typeof ErrorCode | number, keyof typeof GrpcCode, string])[] = [
    ['None', 'Internal', `${terminated}NO_ERROR`],
    ['Protocol', 'Internal', `${terminated}PROTOCOL_ERROR`],
    ['Internal', 'Internal', `${terminated}INTERNAL_ERROR`],
    ['FlowControl', 'Internal', `${terminated}FLOW_CONTROL_ERROR`],
    ['SettingsTimeout', 'Internal', `${terminated}SETTINGS_TIMEOUT`],
    ['StreamClosed', 'Internal', `${terminated}STREAM_CLOSED`],
    ['FrameSize', 'Internal', `${terminated}FRAME_SIZE_ERROR`],
    ['RefusedStream', 'Unavailable', `${terminated}REFUSED_STREAM`],
    ['Cancel', 'Canceled', `${terminated}CANCEL`],
    ['EnhanceYourCalm', 'ResourceExhausted', `${terminated}ENHANCE_YOUR_CALM`],
    ['InadequateSecurity', 'PermissionDenied', `${terminated}INADEQUATE_SECURITY`],
    [77, 'Unknown', `${terminated}77`],
  ];
  for (const [code, wanted, message] of resets)
    for (const when of ['before the head', 'after it'])
      it(`a reset with ${code}, ${when}`, async (t) => {
        const number = typeof code === 'number' ? code : ErrorCode[code];
        const { channel } = await serve(t, ({ socket, stream }) => {
          const reset = resetFrame(stream, number);
          socket.write(when === 'after it' ? Buffer.concat([head(stream), reset]) : reset);
        });
        await assert.rejects(call(channel), { code: GrpcCode[wanted], message });
      });

  const statuses: readonly (readonly [number, keyof typeof GrpcCode, string])[] = [
    [400, 'Internal', 'Bad Request'],
    [401, 'Unauthenticated', 'Unauthorized'],
    [403, 'PermissionDenied', 'Forbidden'],
    [404, 'Unimplemented', 'Not Found'],
    [429, 'Unavailable', 'Too Many Requests'],
    [500, 'Unknown', 'Internal Server Error'],
    [502, 'Unavailable', 'Bad Gateway'],
    [503, 'Unavailable', 'Service Unavailable'],
    [504, 'Unavailable', 'Gateway Timeout'],
  ];
  for (const [status, wanted, text] of statuses)
    it(`the HTTP status ${status}`, async (t) => {
      const block = encodeHeaders([[':status', String(status)]]);
      const flags = Flag.EndHeaders | Flag.EndStream;
      const { channel } = await serve(t, ({ socket, stream }) =>
        socket.write(frameOf(FrameType.Headers, flags, stream, block)),
      );
      const message = `unexpected HTTP status code received from server: ${status} (${text})`;
      await assert.rejects(call(channel), { code: GrpcCode[wanted], message });
    });

  const broken: readonly (readonly [string, (stream: number) => readonly Buffer[], keyof typeof GrpcCode, RegExp])[] = [
    [
      'no trailers',
      (stream) => [head(stream), data(stream, frame(Buffer.alloc(0)), Flag.EndStream)],
      'Internal',
      /^server closed the stream without sending trailers$/,
    ],
    ['data ahead of the head', (stream) => [data(stream, Buffer.alloc(1))], 'Internal', /ahead of the headers/],
    ['a farewell with an error', () => [goAwayFrame(ErrorCode.EnhanceYourCalm)], 'Unavailable', /REFUSED_STREAM|CALM/],
  ];
  for (const [name, frames, wanted, message] of broken)
    it(name, async (t) => {
      const { channel } = await serve(t, ({ socket, stream }) => socket.write(Buffer.concat(frames(stream))));
      await assert.rejects(call(channel), { code: GrpcCode[wanted], message });
    });
});

describe('a server that does not speak HTTP/2', () => {
  const silent = Buffer.alloc(0);

  it('is given up after the time for connecting, and no call is sent', async (t) => {
    const path = join(root, `${next++}.sock`);
    const sockets: Socket[] = [];
    const server = createServer((socket) => void sockets.push(socket.on('error', () => undefined))).listen(path);
    await once(server, 'listening');
    t.after(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const channel = channelTo(path, { connectTimeoutMs: 50 });
    await assert.rejects(channel.connect(never), { code: GrpcCode.Unavailable, message: /connect timed out/ });
    await assert.rejects(call(channel), { code: GrpcCode.Unavailable, message: /connect timed out/ });
    channel.close();
  });

  it('is left when the channel is closed', async (t) => {
    const { channel } = await serve(t, () => undefined, silent);
    const asked = call(channel);
    channel.close();
    await assert.rejects(asked, { code: GrpcCode.Unavailable, message: /closed/ });
  });

  it('is told apart when it hangs up or answers something else', async (t) => {
    for (const [text, message] of [
      ['', /error reading server preface: EOF/],
      ['HTTP/1.1 400 Bad Request\r\n\r\n', /or no HTTP\/2 at all/],
    ] as const) {
      const path = join(root, `${next++}.sock`);
      const server = createServer((socket) => socket.on('error', () => undefined).end(text)).listen(path);
      await once(server, 'listening');
      t.after(() => server.close());
      const channel = channelTo(path);
      await assert.rejects(call(channel), { code: GrpcCode.Unavailable, message });
    }
  });
});
