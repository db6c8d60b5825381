import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { HostReadings } from './host-readings.ts';

test('processors and limits are read once a minute, memory each time', async () => {
  const clock = new ManualClock();
  const host = new HostReadings(clock);
  const facts = await host.machine();
  assert.ok(facts.memoryBytes > 0);
  await clock.advance(59_999);
  const next = await host.machine();
  assert.deepEqual(next, facts);
  assert.equal(next.hugePages, facts.hugePages, 'not read again');
  await clock.advance(1);
  assert.notEqual((await host.machine()).hugePages, facts.hugePages);
});
