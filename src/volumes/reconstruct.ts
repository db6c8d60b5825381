// What earlier runs, ours or the Go kubelet's, left under the pods directory. Only names are read: a volume itself may
// be on a filesystem that does not answer.
import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { VolumeMode } from '../core/storage.ts';
import { errnoOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { unescapePlugin, type VolumeLayout } from './layout.ts';
import type { VolumeOnDisk, VolumePlugin, VolumeResolver } from './plugin.ts';

export type FoundVolume = {
  readonly uid: string;
  readonly specName: string;
  readonly volumeMode: VolumeMode;
  /** Absent where only the binds of sub paths are left of a volume without a directory of its own. */
  readonly plugin?: VolumePlugin;
  /** The name a controller may have attached it under. */
  readonly attachedName?: string;
  readonly uniqueName?: string;
  readonly metricName?: string;
  /** Its plugin could make no sense of it. */
  readonly isBroken?: true;
};

/** Told of every volume that is found: whether it is known what it is. */
export type Reconstructed = (succeeded: boolean) => void;

export async function volumesOnDisk(
  layout: VolumeLayout,
  resolver: Pick<VolumeResolver, 'byName'>,
  log: Logger,
  reconstructed: Reconstructed = () => undefined,
): Promise<FoundVolume[]> {
  const found: FoundVolume[] = [];
  for (const uid of await directoriesIn(layout.podsDir)) {
    const known = new Set<string>();
    for (const { volumeMode, dir, isVolume } of placesOf(layout, uid)) {
      for (const directory of await directoriesIn(dir)) {
        const plugin = await resolver.byName(unescapePlugin(directory));
        for (const specName of await namesIn(join(dir, directory), isVolume)) {
          known.add(specName);
          const volume = plugin === undefined ? undefined : await describe(plugin, { uid, specName, volumeMode }, log);
          reconstructed(volume !== undefined && volume.isBroken !== true);
          if (volume !== undefined) found.push(volume);
          else
            log.warn('volume of an unknown kind is left alone', { podUID: uid, plugin: directory, volume: specName });
        }
      }
    }
    for (const specName of await directoriesIn(layout.subPathsDir(uid))) {
      if (!known.has(specName)) found.push({ uid, specName, volumeMode: 'Filesystem' });
    }
  }
  return found;
}

type Place = { readonly volumeMode: VolumeMode; readonly dir: string; readonly isVolume: (entry: Dirent) => boolean };

/** Filesystems are directories, devices are links. */
const placesOf = (layout: VolumeLayout, uid: string): readonly Place[] => [
  { volumeMode: 'Filesystem', dir: layout.volumesDir(uid), isVolume: (entry) => entry.isDirectory() },
  { volumeMode: 'Block', dir: layout.volumeDevicesDir(uid), isVolume: (entry) => entry.isSymbolicLink() },
];

/** What a plugin cannot make sense of is found all the same: it will be set up again or torn down. */
async function describe(plugin: VolumePlugin, volume: VolumeOnDisk, log: Logger): Promise<FoundVolume> {
  try {
    return { ...volume, plugin, ...(await plugin.reconstruct?.(volume)) };
  } catch (err) {
    log.warn('volume could not be reconstructed', { podUID: volume.uid, volume: volume.specName, err });
    return { ...volume, plugin, isBroken: true };
  }
}

const directoriesIn = (path: string): Promise<string[]> => namesIn(path, (entry) => entry.isDirectory());

async function namesIn(path: string, wanted: (entry: Dirent) => boolean): Promise<string[]> {
  try {
    return (await readdir(path, { withFileTypes: true })).filter(wanted).map((entry) => entry.name);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return [];
    throw err;
  }
}
