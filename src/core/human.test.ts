import assert from 'node:assert/strict';
import { it } from 'node:test';
import { humanBytes, humanProgress, humanSpan } from './human.ts';

it('durations', () => {
  for (const [ms, text] of [
    [-5, '0 s'],
    [17_000, '17 s'],
    [59_600, '1 min'],
    [200_000, '3 min 20 s'],
    [7_500_000, '2 h 5 min'],
    [356_400_000, '4 d 3 h'],
  ] as const)
    assert.equal(humanSpan(ms), text);
});

it('sizes', () => {
  for (const [bytes, text] of [
    [0, '0 B'],
    [734, '734 B'],
    [999.6, '1.0 kB'],
    [5_230_000, '5.2 MB'],
    [99_960_000, '100 MB'],
    [3e15, '3000 TB'],
  ] as const)
    assert.equal(humanBytes(bytes), text);
});

it('progress, as much of it as is known', () => {
  for (const [progress, text] of [
    [undefined, '40 s so far'],
    [{ doneBytes: 5e6 }, '5.0 MB done, 40 s so far'],
    [{ doneBytes: 5e6, bytesPerSecond: 1e6 }, '5.0 MB done, 1.0 MB/s, 40 s so far'],
    [{ doneBytes: 5e6, totalBytes: 2e7 }, '25 % of 20.0 MB, 40 s so far'],
    [
      { doneBytes: 5e6, totalBytes: 2e7, bytesPerSecond: 1e6, remainingSeconds: 15 },
      '25 % of 20.0 MB, 1.0 MB/s, 15 s left',
    ],
    [{ doneBytes: 2e7, totalBytes: 2e7, bytesPerSecond: 0 }, 'all of 20.0 MB is here, being unpacked, 40 s so far'],
  ] as const)
    assert.equal(humanProgress(progress, 40_000), text);
});
