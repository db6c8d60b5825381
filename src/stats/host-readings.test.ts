import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

test('files in a folder count by whatever name, and nothing else does', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kts-readings-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const host = new HostReadings(new ManualClock());
  writeFileSync(join(dir, 'plain'), Buffer.alloc(5_000, 1));
  const odd = Buffer.concat([Buffer.from(`${dir}/caf`), Buffer.from([0xe9])]);
  writeFileSync(odd, Buffer.alloc(9_000, 1));
  const blocks = statSync(join(dir, 'plain')).blocks + statSync(odd).blocks;
  assert.deepEqual(await host.filesIn(dir), { bytes: blocks * 512, inodes: 2 });
  assert.equal(await host.filesIn(join(dir, 'nowhere')), undefined);
});
