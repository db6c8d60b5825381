import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { Registry } from '../lib/metrics.ts';
import { MountTable } from '../host/mounts/mount-table.ts';
import { VolumeLayout } from './layout.ts';
import { VolumeMetrics } from './metrics.ts';
import type { VolumePlugin } from './plugin.ts';
import { writeNote } from './attach-notes.ts';
import { PodDirs } from './pod-dirs.ts';
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

test('a disk of which only the note is left is found once, as it was asked for, and keeps the directory of its pod', async () => {
  const root = mkdtempSync(join(tmpdir(), 'kts-reconstruct-'));
  try {
    const layout = new VolumeLayout(root);
    for (const dir of ['volumes/test~disk/both', 'volumeDevices/test~disk', 'plugins/kubernetes.io~empty-dir/wrapped'])
      mkdirSync(join(root, 'pods/u', dir), { recursive: true });
    symlinkSync('/dev/null', join(root, 'pods/u/volumeDevices/test~disk/linked'));
    const note = (specName: string, volumeMode: 'Block' | 'Filesystem'): Promise<void> =>
      writeNote(layout, 'test/disk', { uid: 'u', specName, volumeMode }, { disk: specName });
    for (const name of ['both', 'mounting']) await note(name, 'Filesystem');
    for (const name of ['linked', 'mapping']) await note(name, 'Block');
    writeFileSync(join(root, 'pods/u/plugins/test~disk/damaged.json'), '{"config":');
    const plugin = {
      name: 'test/disk',
      reconstruct: ({ specName }) => Promise.resolve({ attachedName: `test/${specName}` }),
    } as VolumePlugin;
    const resolver = { byName: (name: string) => Promise.resolve(name === plugin.name ? plugin : undefined) };
    const found = await volumesOnDisk(layout, resolver, silentLogger);
    assert.deepEqual(found.map((one) => `${one.volumeMode} ${one.attachedName ?? ''}`).sort(), [
      'Block test/linked',
      'Block test/mapping',
      'Filesystem test/both',
      'Filesystem test/damaged',
      'Filesystem test/mounting',
    ]);
    const dirs = new PodDirs(layout, { table: () => Promise.resolve(new MountTable([])) });
    const never = new AbortController().signal;
    for (const left of ['volumeDevices/test~disk/linked', 'volumes/test~disk/both'])
      rmSync(join(root, 'pods/u', left), { recursive: true });
    await assert.rejects(dirs.removeOrphan('u', never), {
      kind: 'conflict',
      message: /\/pods\/u still has the disk test~disk\/\w+$/,
    });
    rmSync(join(root, 'pods/u/plugins/test~disk'), { recursive: true });
    await dirs.removeOrphan('u', never);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('one pod whose volumes cannot be listed leaves those of the others found', async () => {
  const root = mkdtempSync(join(tmpdir(), 'kts-reconstruct-'));
  try {
    for (const uid of ['a', 'b', 'c']) mkdirSync(join(root, 'pods', uid, 'volumes/test~disk/v'), { recursive: true });
    rmSync(join(root, 'pods/b/volumes'), { recursive: true });
    writeFileSync(join(root, 'pods/b/volumes'), '');
    const resolver = { byName: () => Promise.resolve({ name: 'test/disk' } as VolumePlugin) };
    const logged: unknown[] = [];
    const log = { ...silentLogger, error: (_: string, fields?: object) => void logged.push(fields) };
    const found = await volumesOnDisk(new VolumeLayout(root), resolver, log);
    assert.deepEqual(found.map(({ uid }) => uid).sort(), ['a', 'c']);
    assert.match(JSON.stringify(logged), /"podUID":"b","path":"[^"]*\/pods\/b"/);
  } finally {
    rmSync(root, { recursive: true });
  }
});
