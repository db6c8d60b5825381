// How long a container waits after it ended.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CrashBackoff } from './crash-backoff.ts';

describe('crash back-off', () => {
  const max = 300_000;
  const backoff = (): CrashBackoff => new CrashBackoff({ initialMs: 10_000, maxMs: max });

  it('first restart at once, then 10 s, 20 s, … 300 s after the end', () => {
    const b = backoff();
    let now = 1_000_000;
    const waits: number[] = [];
    for (let i = 0; i < 8; i++) {
      const ended = now;
      const wait = b.waiting('k', ended, now);
      waits.push(wait?.delayMs ?? 0);
      if (wait !== undefined) assert.equal(wait.retryAt, ended + wait.delayMs);
      now = ended + (wait?.delayMs ?? 0);
      assert.equal(b.waiting('k', ended, now), undefined);
      b.started('k', ended, now);
    }
    assert.deepEqual(waits, [0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
  });
  it('starts over after a long good run', () => {
    const b = backoff();
    b.started('k', 0, 0);
    b.started('k', 0, 0);
    const ended = 2 * max + 1;
    assert.equal(b.waiting('k', ended, ended), undefined);
    b.started('k', ended, ended);
    assert.equal(b.waiting('k', ended, ended)?.delayMs, 10_000);
  });
  it('a maximum below the first delay is the first delay', () => {
    const b = new CrashBackoff({ initialMs: 10_000, maxMs: 2_000 });
    b.started('k', 0, 0);
    assert.equal(b.waiting('k', 0, 0)?.delayMs, 2_000);
    b.started('k', 600_000, 600_000);
    b.started('k', 1_200_000, 1_200_000);
    assert.equal(
      b.waiting('k', 1_800_000, 1_800_000)?.delayMs,
      2_000,
      'ten minutes make a good run, not twice the delay',
    );
  });
  it('a clock set back does not stretch the wait', () => {
    const b = backoff();
    b.started('k', 1_000_000, 1_000_000);
    assert.equal(b.waiting('k', 1_000_000, 400_000)?.retryAt, 410_000);
    assert.equal(b.waiting('k', 1_000_000, 405_000)?.retryAt, 410_000, 'however often it is asked');
    assert.equal(b.waiting('k', 1_000_000, 410_000), undefined);
    b.started('k', 1_000_000, 410_000);
    assert.equal(b.waiting('k', 411_000, 412_000)?.retryAt, 431_000, 'later ends are of the clock as it is now');
    assert.equal(b.waiting('k', 900_000, 300_000)?.retryAt, 320_000);
    assert.equal(b.waiting('k', 900_000, 200_000)?.retryAt, 220_000, 'set back once more');
    assert.equal(b.waiting('k', 900_000, 220_000), undefined);
  });
  it('forgets', () => {
    const b = backoff();
    b.started('k', 0, 0);
    b.prune(2 * max);
    assert.equal(b.size, 1);
    b.prune(2 * max + 1);
    assert.equal(b.size, 0);
  });
});
