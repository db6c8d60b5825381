import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { thermalPaths } from './thermal.ts';

test('finds the directories of processors that have one', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'thermal-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const path of ['cpu1/thermal_throttle', 'cpu0/thermal_throttle', 'cpu2/cache', 'cpufreq/thermal_throttle'])
    mkdirSync(join(root, path), { recursive: true });
  assert.deepEqual(await thermalPaths(root), [
    join(root, 'cpu0/thermal_throttle'),
    join(root, 'cpu1/thermal_throttle'),
  ]);
  assert.deepEqual(await thermalPaths(join(root, 'nothing')), []);
});
