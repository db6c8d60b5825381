import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { ABSENCE_MS, SliceCleaner } from './resource-slices.ts';

describe('resource slices', () => {
  it('all at the start, a driver’s after half a minute without it', async () => {
    const clock = new ManualClock();
    const deleted: string[] = [];
    let refused = 1;
    const cleaner = new SliceCleaner(
      {
        clock,
        log: silentLogger,
        deleteSlices: async (selector) => {
          if (refused-- > 0) throw new KubeletError('unavailable', 'not now');
          deleted.push(selector);
        },
      },
      { nodeName: 'n1' },
    );
    const stop = new AbortController();
    const running = cleaner.run(stop.signal);
    await clock.advance(2000);
    assert.deepEqual(deleted, ['spec.nodeName=n1']);
    cleaner.driverGone('a');
    cleaner.driverGone('b');
    await clock.advance(ABSENCE_MS - 1);
    cleaner.driverBack('a');
    await clock.advance(10);
    assert.deepEqual(deleted.slice(1), ['spec.nodeName=n1,spec.driver=b']);
    stop.abort();
    await running;
  });
});
