import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../../lib/logger.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { LimitUpdates } from './limit-updates.ts';

test('limits are asked for as often as the object says, while the driver is there', async () => {
  const clock = new ManualClock();
  const asked: string[] = [];
  let drivers = ['a', 'b'];
  const periods = new Map([['a', 10]]);
  const updates = new LimitUpdates({
    drivers: {
      names: () => drivers,
      refreshLimits: (driver) => {
        asked.push(`${clock.monotonic()} ${driver}`);
        return asked.length === 1 ? Promise.reject(new Error('no answer')) : Promise.resolve();
      },
    },
    periodSeconds: (driver) => periods.get(driver),
    clock,
    log: silentLogger,
  });
  const stop = new AbortController();
  const running = updates.run(stop.signal);
  await clock.advance(25_000);
  assert.deepEqual(asked.splice(0), ['10000 a', '20000 a']);
  periods.set('a', 4);
  updates.changed();
  await clock.advance(9_000);
  assert.deepEqual(asked.splice(0), ['29000 a', '33000 a']);
  drivers = [];
  updates.changed();
  await clock.advance(60_000);
  assert.deepEqual(asked, []);
  stop.abort();
  await running;
  assert.equal(clock.pending, 0);
});
