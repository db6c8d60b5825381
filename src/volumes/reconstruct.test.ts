import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { Registry } from '../lib/metrics.ts';
import { VolumeLayout } from './layout.ts';
import { VolumeMetrics } from './metrics.ts';
import type { VolumePlugin } from './plugin.ts';
import { volumesOnDisk } from './reconstruct.ts';

test('volumes on disk are counted, and those that make no sense as errors', async () => {
  const root = mkdtempSync(join(tmpdir(), 'kts-reconstruct-'));
  try {
    for (const path of [
      'volumes/test~disk/good',
      'volumes/test~disk/bad',
      'volumes/other~kind/x',
      'volume-subpaths/gone',
    ])
      mkdirSync(join(root, 'pods/u', path), { recursive: true });
    const plugin = {
      name: 'test/disk',
      reconstruct: ({ specName }) =>
        specName === 'good' ? Promise.resolve({ metricName: 'test/disk:d' }) : Promise.reject(new Error('no')),
    } as VolumePlugin;
    const resolver = { byName: (name: string) => Promise.resolve(name === plugin.name ? plugin : undefined) };
    const registry = new Registry();
    const metrics = new VolumeMetrics(registry);
    const found = await volumesOnDisk(new VolumeLayout(root), resolver, silentLogger, (ok) =>
      metrics.reconstructed(ok),
    );
    assert.deepEqual(
      found.map(({ specName, metricName, isBroken }) => `${specName} ${metricName ?? ''} ${isBroken ?? false}`).sort(),
      ['bad  true', 'gone  false', 'good test/disk:d false'],
    );
    const shown = registry.render();
    assert.match(shown, /^reconstruct_volume_operations_total 3$/m, 'binds of sub paths are no volume');
    assert.match(shown, /^reconstruct_volume_operations_errors_total 2$/m);
    assert.match(shown, /^force_cleaned_failed_volume_operations_total 0$/m);
  } finally {
    rmSync(root, { recursive: true });
  }
});
