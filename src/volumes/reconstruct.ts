// What earlier runs, ours or the Go kubelet's, left under the pods directory. Only names are read: a volume itself may
// be on a filesystem that does not answer.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { unescapePlugin, type VolumeLayout } from './layout.ts';
import type { VolumePlugin, VolumeResolver } from './plugin.ts';

export type FoundVolume = {
  readonly uid: string;
  readonly specName: string;
  /** Absent where only the binds of sub paths are left of a volume without a directory of its own. */
  readonly plugin?: VolumePlugin;
};

export async function volumesOnDisk(
  layout: VolumeLayout,
  resolver: Pick<VolumeResolver, 'byName'>,
  log: Logger,
): Promise<FoundVolume[]> {
  const found: FoundVolume[] = [];
  for (const uid of await directoriesIn(layout.podsDir)) {
    const known = new Set<string>();
    for (const directory of await directoriesIn(layout.volumesDir(uid))) {
      const plugin = resolver.byName(unescapePlugin(directory));
      for (const specName of await directoriesIn(join(layout.volumesDir(uid), directory))) {
        known.add(specName);
        if (plugin !== undefined) found.push({ uid, plugin, specName });
        else log.warn('volume of an unknown kind is left alone', { podUID: uid, plugin: directory, volume: specName });
      }
    }
    for (const specName of await directoriesIn(layout.subPathsDir(uid))) {
      if (!known.has(specName)) found.push({ uid, specName });
    }
  }
  return found;
}

async function directoriesIn(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return [];
    throw err;
  }
}
