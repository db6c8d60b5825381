// The client against a peer that is played by hand: what the protocol allows and no usual server does, what it forbids, and what
// a peer can do to tire a client out.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { until } from '../../../test/harness/until.ts';
import {
  Flag,
  FrameType,
  goAwayFrame,
  resetFrame,
  Setting,
  settingsFrame,
  SETTINGS_ACK,
  windowUpdateFrame,
} from './frames.ts';
import { encodeHeaders } from './hpack-encoder.ts';
import { data, frameOf, HEAD, NO_SETTINGS, play, Told, type Played } from './peer.fixture.ts';
import { ErrorCode, ProtocolError } from './protocol-error.ts';

const block = encodeHeaders([
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
]);
const { Headers, Priority, ResetStream, Settings, PushPromise, Ping, GoAway, WindowUpdate, Continuation } = FrameType;
const { EndStream, EndHeaders, Padded, Ack } = Flag;
const text = (value: string): string => Buffer.from(value).toString('hex');

/** One request, and what comes after it. */
async function asked(...frames: readonly Buffer[]): Promise<Played & { told: Told }> {
  const played = play();
  const told = new Told();
  played.connection.request({ block }, told);
  played.peer.send(NO_SETTINGS, ...frames);
  await until('the settings were read', () => played.closing.log.length > 0);
  return { ...played, told };
}

describe('what a peer may send', () => {
  const OK = ['head 200', 'data', 'end'];
  const rows: readonly (readonly [string, readonly Buffer[], readonly string[], string])[] = [
    ['a plain answer', [HEAD, data(1, Buffer.from('abc'), EndStream)], OK, 'abc'],
    ['no body', [frameOf(Headers, EndHeaders | EndStream, 1, '88')], ['head 200', 'end'], ''],
    [
      'trailers',
      [HEAD, frameOf(Headers, EndHeaders | EndStream, 1, `0001${text('t')}01${text('v')}`)],
      ['head 200', 'trailers', 'end'],
      '',
    ],
    [
      'padding',
      [
        frameOf(Headers, EndHeaders | Padded, 1, '0388000000'),
        data(1, Buffer.from(`02${text('abc')}0000`, 'hex'), EndStream | Padded),
      ],
      OK,
      'abc',
    ],
    [
      'padding and nothing else',
      [HEAD, data(1, Buffer.from('020000', 'hex'), Padded), data(1, Buffer.from('abc'), EndStream)],
      OK,
      'abc',
    ],
    [
      'priority',
      [
        frameOf(Priority, 0, 1, '0000000010'),
        frameOf(Headers, EndHeaders | Flag.Priority, 1, '800000001088'),
        data(1, Buffer.from('abc'), EndStream),
      ],
      OK,
      'abc',
    ],
    [
      'frames of another time',
      [frameOf(0xbe, 0xff, 1, 'ff'), HEAD, frameOf(0x10, 0, 0), data(1, Buffer.from('abc'), EndStream)],
      OK,
      'abc',
    ],
    [
      'settings of another time',
      [
        settingsFrame([
          [0x99, 7],
          [Setting.EnablePush, 0],
        ]),
        SETTINGS_ACK,
        HEAD,
        data(1, Buffer.from('abc'), EndStream),
      ],
      OK,
      'abc',
    ],
    [
      'headers in pieces',
      [
        frameOf(Headers, 0, 1, '88'),
        frameOf(Continuation, 0, 1, '00'),
        frameOf(Continuation, 0, 1),
        frameOf(Continuation, EndHeaders, 1, '01610162'),
        data(1, Buffer.from('abc'), EndStream),
      ],
      OK,
      'abc',
    ],
    [
      'heads ahead of the head',
      [frameOf(Headers, EndHeaders, 1, `0803${text('103')}`), HEAD, data(1, Buffer.from('abc'), EndStream)],
      OK,
      'abc',
    ],
    ['an empty last frame', [HEAD, data(1, Buffer.from('abc')), data(1, Buffer.alloc(0), EndStream)], OK, 'abc'],
    [
      'an answer to a ping that nobody sent',
      [frameOf(Ping, Ack, 0, '00'.repeat(8)), HEAD, data(1, Buffer.from('abc'), EndStream)],
      OK,
      'abc',
    ],
    [
      'frames of a stream that is over',
      [
        HEAD,
        data(1, Buffer.from('abc'), EndStream),
        data(1, Buffer.from('late')),
        resetFrame(1, 0),
        windowUpdateFrame(1, 5),
        frameOf(Headers, EndHeaders, 1, '88'),
      ],
      OK,
      'abc',
    ],
  ];
  for (const [name, frames, log, body] of rows)
    it(name, async () => {
      const { told, closing } = await asked(...frames);
      await until('the end', () => told.isOver);
      assert.deepEqual(told.log, log);
      assert.equal(told.body.toString(), body);
      assert.deepEqual(closing.log, ['ready']);
    });
});

it('a peer is told of what was read in few frames, and never more than was', async () => {
  const { peer, told } = await asked(HEAD);
  for (let i = 0; i < 100; i++) {
    peer.send(data(1, Buffer.alloc(10_000)));
    await until('the chunk', () => told.chunks.length === i + 1, 30_000, 1);
  }
  const increments = (stream: number): number[] => peer.of(WindowUpdate, stream).map((f) => f.payload.readUInt32BE(0));
  await until('the last of them', () => increments(0).length === 11, 30_000, 1);
  assert.deepEqual(increments(0), [200_000 - 65_535, ...Array.from({ length: 10 }, () => 100_000)]);
  assert.deepEqual(
    increments(1),
    Array.from({ length: 20 }, () => 50_000),
  );
});

describe('what loses a stream and nothing else', () => {
  const rows: readonly (readonly [string, readonly Buffer[], number, RegExp | undefined])[] = [
    ['taken back', [resetFrame(1, ErrorCode.Cancel)], ErrorCode.Cancel, undefined],
    ['taken back in the middle', [HEAD, resetFrame(1, ErrorCode.None)], ErrorCode.None, undefined],
    ['refused', [resetFrame(1, ErrorCode.RefusedStream)], ErrorCode.RefusedStream, /error code REFUSED_STREAM/],
    ['reset with a code of another time', [resetFrame(1, 77)], 77, /error code 77/],
    ['data ahead of the headers', [data(1, Buffer.from('abc'))], ErrorCode.Protocol, /ahead/],
    ['no status', [frameOf(Headers, EndHeaders, 1, `0001${text('t')}01${text('v')}`)], ErrorCode.Protocol, /status/],
    ['a status that is none', [frameOf(Headers, EndHeaders, 1, `0803${text('2x0')}`)], ErrorCode.Protocol, /status/],
    [
      'an end without an answer',
      [frameOf(Headers, EndHeaders | EndStream, 1, `0803${text('103')}`)],
      ErrorCode.Protocol,
      /before the answer/,
    ],
    ['a second head', [HEAD, HEAD], ErrorCode.Protocol, /second/],
    [
      'another length than announced',
      [frameOf(Headers, EndHeaders, 1, `880f0d01${text('4')}`), data(1, Buffer.from('abc'), EndStream)],
      ErrorCode.Protocol,
      /length/,
    ],
    ['a window of the stream that grows by nothing', [windowUpdateFrame(1, 0)], ErrorCode.Protocol, /nothing/],
    [
      'a window of the stream that is too large',
      [windowUpdateFrame(1, 0x7fffffff)],
      ErrorCode.FlowControl,
      /too large/,
    ],
  ];
  for (const [name, frames, code, error] of rows)
    it(name, async () => {
      const { told, connection, closing, peer } = await asked(...frames);
      await until('the end', () => told.isOver);
      assert.equal(told.code, code);
      if (error === undefined) assert.equal(told.error, undefined);
      else assert.match(String(told.error), error);
      assert.deepEqual(closing.log, ['ready']);
      const next = new Told();
      connection.request({ block }, next);
      peer.send(frameOf(Headers, EndHeaders | EndStream, 3, '88'));
      await until('the next answer', () => next.isOver);
      assert.deepEqual(next.log, ['head 200', 'end']);
    });
});

describe('what ends the connection', () => {
  const repeated = (frame: Buffer, times: number): Buffer => Buffer.concat(Array.from({ length: times }, () => frame));
  const rows: readonly (readonly [string, readonly Buffer[], number])[] = [
    ['a push', [frameOf(PushPromise, EndHeaders, 1, '0000000288')], ErrorCode.Protocol],
    ['the permission to push', [settingsFrame([[Setting.EnablePush, 1]])], ErrorCode.Protocol],
    ['a stream of its own', [frameOf(Headers, EndHeaders, 2, '88')], ErrorCode.Protocol],
    ['data of a stream that nobody opened', [data(3, Buffer.from('x'))], ErrorCode.Protocol],
    ['a reset of a stream that nobody opened', [resetFrame(9, 0)], ErrorCode.Protocol],
    ['headers of no stream', [frameOf(Headers, EndHeaders, 0, '88')], ErrorCode.Protocol],
    ['data of no stream', [data(0, Buffer.from('x'))], ErrorCode.Protocol],
    ['settings of a stream', [frameOf(Settings, 0, 1)], ErrorCode.Protocol],
    ['settings that are cut off', [frameOf(Settings, 0, 0, '0001')], ErrorCode.FrameSize],
    ['an answer to settings with settings', [frameOf(Settings, Ack, 0, '000100000000')], ErrorCode.FrameSize],
    ['a ping of a stream', [frameOf(Ping, 0, 1, '00'.repeat(8))], ErrorCode.Protocol],
    ['a short ping', [frameOf(Ping, 0, 0, '00')], ErrorCode.FrameSize],
    ['a short reset', [frameOf(ResetStream, 0, 1, '00')], ErrorCode.FrameSize],
    ['a short window', [frameOf(WindowUpdate, 0, 0, '00')], ErrorCode.FrameSize],
    ['a short farewell', [frameOf(GoAway, 0, 0, '00')], ErrorCode.FrameSize],
    ['frames that are too small', [settingsFrame([[Setting.MaxFrameSize, 1]])], ErrorCode.Protocol],
    ['frames that are too large', [settingsFrame([[Setting.MaxFrameSize, 2 ** 24]])], ErrorCode.Protocol],
    ['windows that are too large', [settingsFrame([[Setting.InitialWindowSize, 2 ** 31]])], ErrorCode.FlowControl],
    ['a window of the connection that is too large', [windowUpdateFrame(0, 0x7fffffff)], ErrorCode.FlowControl],
    ['a window of the connection that grows by nothing', [windowUpdateFrame(0, 0)], ErrorCode.Protocol],
    [
      'a window of a stream that grows too large by the settings',
      [windowUpdateFrame(1, 0x7fff0000), settingsFrame([[Setting.InitialWindowSize, 0x7fffffff]])],
      ErrorCode.FlowControl,
    ],
    ['more padding than frame', [HEAD, data(1, Buffer.from('05', 'hex'), Padded)], ErrorCode.Protocol],
    ['padding of an empty frame', [HEAD, data(1, Buffer.alloc(0), Padded)], ErrorCode.Protocol],
    [
      'headers with a priority that is cut off',
      [frameOf(Headers, EndHeaders | Flag.Priority, 1, '000000')],
      ErrorCode.FrameSize,
    ],
    ['a continuation of nothing', [frameOf(Continuation, EndHeaders, 1, '88')], ErrorCode.Protocol],
    [
      'another frame within a header block',
      [frameOf(Headers, 0, 1, '88'), frameOf(Ping, 0, 0, '00'.repeat(8))],
      ErrorCode.Protocol,
    ],
    ['a header block that is broken', [frameOf(Headers, EndHeaders, 1, '80')], ErrorCode.Compression],
    [
      'a header block of a stream that is over, broken',
      [resetFrame(1, 0), frameOf(Headers, EndHeaders, 1, '80')],
      ErrorCode.Compression,
    ],
    [
      'a header block that does not end',
      [frameOf(Headers, 0, 1, '88'), repeated(frameOf(Continuation, 0, 1), 1000)],
      ErrorCode.EnhanceYourCalm,
    ],
    [
      'a header block that is large',
      [frameOf(Headers, 0, 1, '88'), repeated(frameOf(Continuation, 0, 1, Buffer.alloc(16_384)), 70)],
      ErrorCode.EnhanceYourCalm,
    ],
    ['empty data without end', [HEAD, repeated(data(1, Buffer.alloc(0)), 10_001)], ErrorCode.EnhanceYourCalm],
    ['pings without end', [repeated(frameOf(Ping, 0, 0, '00'.repeat(8)), 10_001)], ErrorCode.EnhanceYourCalm],
    ['settings without end', [repeated(NO_SETTINGS, 10_001)], ErrorCode.EnhanceYourCalm],
    ['frames of another time without end', [repeated(frameOf(0x44, 0, 0), 10_001)], ErrorCode.EnhanceYourCalm],
    [
      'heads ahead of the head without end',
      [repeated(frameOf(Headers, EndHeaders, 1, `0803${text('103')}`), 10_001)],
      ErrorCode.EnhanceYourCalm,
    ],
  ];
  for (const [name, frames, code] of rows)
    it(name, async () => {
      const { told, closing, written } = await asked(...frames);
      await until('the end', () => closing.log.includes('closed'));
      assert.deepEqual(closing.log, ['ready', 'retired', 'closed']);
      assert.ok(closing.error instanceof ProtocolError && closing.error.code === code, String(closing.error));
      if (!told.isOver) assert.fail('the request was not told');
      assert.ok(written.at(-1)?.equals(goAwayFrame(code)), 'the peer was told');
    });

  it('anything before the settings', async () => {
    for (const frame of [HEAD, SETTINGS_ACK, frameOf(Ping, 0, 0, '00'.repeat(8)), frameOf(0x77, 0, 0)]) {
      const { connection, peer, closing } = play();
      connection.request({ block }, new Told());
      peer.send(frame);
      await until('the end', () => closing.log.includes('closed'));
      assert.match(String(closing.error), /does not begin with its settings/);
    }
  });

  it('more data than the windows allow, of a stream and of all', async () => {
    const held = { block, isPaused: true };
    const one = play({ streamWindow: 70_000, connectionWindow: 1_000_000 });
    one.connection.request(held, new Told());
    one.peer.send(NO_SETTINGS, HEAD, repeated(data(1, Buffer.alloc(10_000)), 7));
    await until('the settings', () => one.closing.log.length > 0);
    assert.deepEqual(one.closing.log, ['ready']);
    one.peer.send(data(1, Buffer.alloc(1)));
    await until('the end', () => one.closing.log.includes('closed'));
    assert.match(String(one.closing.error), /FLOW_CONTROL_ERROR/);
    const all = play({ streamWindow: 70_000, connectionWindow: 100_000 });
    const told = [new Told(), new Told()];
    for (const each of told) all.connection.request(held, each);
    const heads = [HEAD, frameOf(Headers, EndHeaders, 3, '88')];
    all.peer.send(
      NO_SETTINGS,
      ...heads,
      repeated(data(1, Buffer.alloc(10_000)), 7),
      repeated(data(3, Buffer.alloc(10_000)), 4),
    );
    await until('the end', () => all.closing.log.includes('closed'));
    assert.ok(told.every((each) => each.error === all.closing.error && each.code === ErrorCode.Cancel));
  });

  it('a peer that asks and does not read the answers', async () => {
    const { connection, peer, closing } = play();
    peer.send(NO_SETTINGS);
    await until('the settings', () => closing.log.length > 0);
    peer.freeze();
    const flood = repeated(frameOf(Ping, 0, 0, '00'.repeat(8)), 1000);
    for (let i = 0; i < 100 && !connection.isClosed; i++) {
      connection.request({ block }, new Told()); // something of use in between
      peer.send(flood);
      await new Promise((resolve) => void setImmediate(resolve));
    }
    await until('the end', () => connection.isClosed);
    assert.match(String(closing.error), /does not read the answers/);
  });
});

describe('random peers', () => {
  const end = async (played: Played, told: Told): Promise<void> => {
    played.peer.end();
    await until('the end', () => played.connection.isClosed && told.isOver, 30_000, 1);
    assert.deepEqual(played.closing.log.slice(-2), ['retired', 'closed']);
  };

  it('garbage ends the connection and everybody on it', async () => {
    const garbage = fc.array(fc.uint8Array({ minLength: 1, maxLength: 80 }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(fc.boolean(), garbage, async (hasSettings, chunks) => {
        const played = play();
        const told = new Told();
        played.connection.request({ block, body: Buffer.from('body') }, told);
        if (hasSettings) played.peer.send(NO_SETTINGS);
        for (const chunk of chunks) played.peer.send(Buffer.from(chunk));
        await end(played, told);
      }),
      { numRuns: 300 },
    );
  });

  it('frames in any order, cut anywhere, have one end for each request', async () => {
    const payload = fc.oneof(
      fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom('88', '00000001', '0000000000000000', '880f0d0131', '').map((hex) => Buffer.from(hex, 'hex')),
    );
    const frame = fc
      .tuple(fc.nat(10), fc.constantFrom(0, 1, 4, 5, 8, 9, 0x25, 0xff), fc.constantFrom(0, 1, 1, 3, 3, 5, 2), payload)
      .map(([type, flags, stream, body]) => frameOf(type, flags, stream, body));
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 12 }), fc.nat(400), async (frames, at) => {
        const played = play();
        const [first, second] = [new Told(), new Told()];
        played.connection.request({ block }, first);
        played.connection.request({ block, body: Buffer.alloc(100_000) }, second);
        const bytes = Buffer.concat([NO_SETTINGS, ...frames]);
        const where = at % bytes.length;
        if (where > 0) played.peer.send(bytes.subarray(0, where));
        played.peer.send(bytes.subarray(where));
        await end(played, first);
        assert.ok(second.isOver);
        for (const { log } of [first, second]) {
          assert.equal(log.filter((line) => line === 'end' || line === 'lost').length, 1);
          assert.match(log.join(' '), /^(head \d+ )?(data )?(trailers )?(end|lost)$/);
        }
      }),
      { numRuns: 300 },
    );
  });
});
