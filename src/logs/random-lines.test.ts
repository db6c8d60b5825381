import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { LineSplitter } from './line-splitter.ts';
import { Rendering } from './rendering.ts';

const NEWLINE = 0x0a;
const piece = fc.oneof(
  fc.uint8Array({ maxLength: 20 }).map((b) => Buffer.from(b)),
  fc
    .constantFrom('2026-11-15T03:13:01.5Z ', 'stdout ', 'F ', 'P ', 'stderr F', ' ', '\n', '{"log":"', '"}')
    .map((t) => Buffer.from(t)),
);

describe('random logs', () => {
  it('are split the same way however they arrive', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (chunks) => {
        const splitter = new LineSplitter();
        const lines = chunks.flatMap((chunk) => splitter.push(chunk));
        const rest = splitter.remainder();
        for (const line of lines) assert.equal(line.indexOf(NEWLINE), line.length - 1);
        assert.deepEqual(Buffer.concat([...lines, rest ?? Buffer.alloc(0)]), Buffer.concat(chunks));
      }),
      { numRuns: 2000, seed: 20_261_115 },
    );
  });

  it('never raise an exception, and never pass the limit', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.nat(60), fc.boolean(), (pieces, limitBytes, timestamps) => {
        const splitter = new LineSplitter();
        const rendering = new Rendering({ limitBytes, timestamps, sinceNanos: 1n });
        const out = rendering.render(splitter.push(Buffer.concat(pieces)));
        assert.ok(out.length <= limitBytes);
      }),
      { numRuns: 2000, seed: 20_261_115 },
    );
  });
});
