import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { RuntimeService } from '../../cri/gen/cri.ts';
import { decode, encode } from '../proto/codec.ts';
import { frame, FrameReader } from './frame.ts';

const { response } = RuntimeService.execSync;

/** The message in pieces of `size` bytes through a reader that keeps `keep` bytes of each field. */
function read(message: object, size: number, keep: number) {
  const bytes = frame(encode(response, message as never));
  const reader = new FrameReader(2 ** 25, keep);
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) found.push(...reader.push(bytes.subarray(at, at + size)));
  assert.ok(reader.clean);
  assert.equal(found.length, 1);
  return decode(response, found[0] ?? Buffer.alloc(0));
}

describe('a message of which only the beginning of each field is kept', () => {
  it('is the same where nothing is long, and cut where something is, however it comes', () => {
    const text = fc.uint8Array({ maxLength: 300 });
    fc.assert(
      fc.property(
        text,
        text,
        fc.integer(),
        fc.integer({ min: 1, max: 64 }),
        fc.nat(200),
        (out, err, exitCode, size, keep) => {
          const { stdout, stderr, exitCode: code } = read({ stdout: out, stderr: err, exitCode }, size, keep);
          assert.deepEqual(Buffer.from(stdout), Buffer.from(out.subarray(0, keep)));
          assert.deepEqual(Buffer.from(stderr), Buffer.from(err.subarray(0, keep)));
          assert.equal(code, exitCode);
        },
      ),
    );
  });

  it('does not hold what is cut', () => {
    const bytes = frame(encode(response, { stdout: Buffer.alloc(2 ** 24), stderr: Buffer.alloc(0), exitCode: 3 }));
    const reader = new FrameReader(2 ** 25, 1024);
    let most = 0;
    const found: Buffer[] = [];
    // Pieces of their own, as they come from a socket.
    for (let at = 0; at < bytes.length; at += 65_536) {
      found.push(...reader.push(Buffer.from(bytes.subarray(at, at + 65_536))));
      most = Math.max(most, reader.heldBytes);
    }
    assert.equal(decode(response, found[0] ?? Buffer.alloc(0)).exitCode, 3);
    assert.ok(most < 200_000, `${most} bytes were held`);
  });

  it('is refused when it makes no sense', () => {
    for (const bytes of [[0x0b], [0x0a, 0x05, 0x01], Array.from({ length: 12 }, () => 0xff)]) {
      const reader = new FrameReader(1024, 8);
      assert.throws(() => [...reader.push(frame(Buffer.from(bytes)))], /malformed/);
    }
  });
});
