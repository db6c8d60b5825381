// Frames: their bytes as the RFC has them, and the same frames however the stream is cut.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  FrameSplitter,
  goAwayFrame,
  pingFrame,
  resetFrame,
  Setting,
  SETTINGS_ACK,
  settingsFrame,
  windowUpdateFrame,
  writeFrameHead,
} from './frames.ts';
import { ErrorCode, ProtocolError } from './protocol-error.ts';

type Seen = { type: number; flags: number; stream: number; payload: string };

/** What comes of the chunks, and what is thrown. */
function split(chunks: readonly Uint8Array[]): { frames: Seen[]; failure: unknown } {
  const frames: Seen[] = [];
  const splitter = new FrameSplitter((type, flags, stream, bytes, from, to) =>
    frames.push({ type, flags, stream, payload: bytes.toString('hex', from, to) }),
  );
  try {
    for (const chunk of chunks) splitter.push(Buffer.from(chunk));
  } catch (failure) {
    return { frames, failure };
  }
  return { frames, failure: undefined };
}

const bytesOf = ({ type, flags, stream, payload }: Seen): Buffer => {
  const body = Buffer.from(payload, 'hex');
  const out = Buffer.alloc(9 + body.length);
  body.copy(out, writeFrameHead(out, 0, body.length, type, flags, stream));
  return out;
};

const cut = (bytes: Buffer, at: readonly number[]): Buffer[] => {
  const points = [...new Set([0, ...at.map((n) => n % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
  return points.slice(1).map((end, i) => bytes.subarray(points[i], end));
};

describe('frames that are sent', () => {
  const rows = [
    [
      'settings',
      settingsFrame([
        [Setting.EnablePush, 0],
        [Setting.InitialWindowSize, 0x800000],
      ]),
      '00000c0400000000000002000000000004' + '00800000',
    ],
    ['no settings', settingsFrame([]), '000000040000000000'],
    ['the answer to settings', SETTINGS_ACK, '000000040100000000'],
    ['a window', windowUpdateFrame(5, 0x7fffffff), '0000040800000000057fffffff'],
    ['a reset', resetFrame(0x7fffffff, ErrorCode.Cancel), '0000040300' + '7fffffff' + '00000008'],
    ['a ping', pingFrame(false, Buffer.from('12345678')), '000008060000000000' + '3132333435363738'],
    ['the answer to a ping', pingFrame(true, Buffer.from('12345678')), '000008060100000000' + '3132333435363738'],
    ['the end', goAwayFrame(ErrorCode.EnhanceYourCalm), '000008070000000000' + '00000000' + '0000000b'],
  ] as const;
  for (const [name, bytes, hex] of rows) it(name, () => assert.equal(bytes.toString('hex'), hex));
});

describe('frames that come', () => {
  it('are the same however the bytes are cut', () => {
    const shape = {
      type: fc.nat(255),
      flags: fc.nat(255),
      stream: fc.nat(0x7fffffff),
      payload: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('hex')),
    };
    const frame = fc.record(shape, { noNullPrototype: true });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 6 }), fc.array(fc.nat(), { maxLength: 12 }), (frames, at) => {
        const seen = split(cut(Buffer.concat(frames.map(bytesOf)), at));
        assert.deepEqual(seen, { frames, failure: undefined });
      }),
    );
  });

  it('come byte by byte', () => {
    const frames = [
      { type: 4, flags: 0, stream: 0, payload: '' },
      { type: 0, flags: 1, stream: 1, payload: 'ab'.repeat(300) },
    ];
    const bytes = Buffer.concat(frames.map(bytesOf));
    assert.deepEqual(split(Array.from(bytes, (byte) => Buffer.from([byte]))).frames, frames);
  });

  it('have the first bit of the stream left out', () => {
    assert.equal(split([Buffer.from('000000ff00ffffffff', 'hex')]).frames[0]?.stream, 0x7fffffff);
  });

  it('are no longer than we take, whatever garbage it is', () => {
    const largest = { type: 0, flags: 0, stream: 1, payload: 'ff'.repeat(16_384) };
    assert.deepEqual(split([bytesOf(largest)]).frames, [largest]);
    for (const chunks of [[Buffer.from('004001', 'hex'), Buffer.alloc(6)], [Buffer.from('HTTP/1.1 400 Bad Request')]]) {
      const { failure } = split(chunks);
      assert.ok(failure instanceof ProtocolError && failure.code === ErrorCode.FrameSize, String(failure));
    }
  });
});
