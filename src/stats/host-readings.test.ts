import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { HostReadings } from './host-readings.ts';

test('what the machine is made of is read once a minute', async () => {
  const clock = new ManualClock();
  const host = new HostReadings(clock);
  const facts = await host.machine();
  assert.ok(facts.memoryBytes > 0);
  await clock.advance(59_999);
  assert.equal(await host.machine(), facts);
  await clock.advance(1);
  assert.notEqual(await host.machine(), facts);
});
