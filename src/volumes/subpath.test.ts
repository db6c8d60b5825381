// Why a part of a volume cannot be mounted, in upstream's words. What is mounted: test/node.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { HostMounter } from '../host/mounts/mounter.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { VolumeLayout } from './layout.ts';
import { SubPaths } from './subpath.ts';

describe('a sub path that cannot be mounted', () => {
  const dir = mkdtempSync(join(tmpdir(), 'subpath-'));
  after(() => rmSync(dir, { recursive: true }));
  before(() => {
    mkdirSync(join(dir, 'volume'));
    writeFileSync(join(dir, 'volume', 'file'), '');
    symlinkSync('/etc', join(dir, 'volume', 'link'));
  });
  const clock = new ManualClock();
  const mounter = new HostMounter({ clock }, { rootDir: join(dir, 'root') });
  const subPaths = new SubPaths({ layout: new VolumeLayout(join(dir, 'root')), mounter, clock });

  const rows: readonly [string, string, string, string][] = [
    ['beneath a file', 'volume', 'file/x', 'failed to prepare subPath for volumeMount "v" of container "c"'],
    [
      'of a volume that is a file',
      'volume/file',
      'x',
      'failed to prepare subPath for volumeMount "v" of container "c"',
    ],
    ['out of the volume', 'volume', 'link/x', 'failed to prepare subPath for volumeMount "v" of container "c"'],
    ['of a volume that is gone', 'gone', 'x', `stat ${dir}/gone: no such file or directory`],
  ];
  for (const [name, volume, subPath, message] of rows)
    it(name, async () => {
      const request = { uid: 'u', volume: 'v', mountName: 'v', container: 'c', mountIndex: 0, subPath };
      const prepared = subPaths.prepareHere(
        { ...request, volumePath: join(dir, volume) },
        new AbortController().signal,
      );
      await assert.rejects(prepared, { message });
    });
});
