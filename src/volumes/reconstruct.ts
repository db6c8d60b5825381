// What earlier runs, ours or the Go kubelet's, left under the pods directory. Only names are read: a volume itself may
// be on a filesystem that does not answer.
import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { VolumeMode } from '../core/storage.ts';
import { errnoOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { notesOf, type FoundNote } from './attach-notes.ts';
import { escapePlugin, unescapePlugin, type VolumeLayout } from './layout.ts';
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
    try {
      found.push(...(await volumesOf(uid, { layout, resolver, log, reconstructed })));
    } catch (err) {
      // One pod's trouble. Its directory stays: what cannot be listed is not removed either.
      log.error('volumes of a pod cannot be read', { podUID: uid, path: layout.podDir(uid), err });
    }
  }
  return found;
}

type Reading = {
  readonly layout: VolumeLayout;
  readonly resolver: Pick<VolumeResolver, 'byName'>;
  readonly log: Logger;
  readonly reconstructed: Reconstructed;
};

async function volumesOf(uid: string, reading: Reading): Promise<FoundVolume[]> {
  const { layout } = reading;
  const found: FoundVolume[] = [];
  const known = new Set<string>();
  const add = async (volume: VolumeOnDisk & { readonly plugin: string }): Promise<void> => {
    known.add(volume.specName);
    const described = await identify(volume, reading);
    if (described !== undefined) found.push(described);
  };
  for (const { volumeMode, dir, isVolume } of placesOf(layout, uid))
    for (const plugin of await directoriesIn(dir))
      for (const specName of await namesIn(join(dir, plugin), isVolume))
        await add({ uid, plugin, specName, volumeMode });
  // A disk of which the pod has nothing yet, or nothing any more.
  for (const note of await notesOf(layout, uid))
    if (!found.some((one) => one.specName === note.specName && isOf(one, note))) await add({ uid, ...note });
  for (const specName of await directoriesIn(layout.subPathsDir(uid)))
    if (!known.has(specName)) found.push({ uid, specName, volumeMode: 'Filesystem' });
  return found;
}

async function identify(
  { plugin: directory, ...volume }: VolumeOnDisk & { readonly plugin: string },
  { resolver, log, reconstructed }: Reading,
): Promise<FoundVolume | undefined> {
  const plugin = await resolver.byName(unescapePlugin(directory));
  const described = plugin === undefined ? undefined : await describe(plugin, volume, log);
  reconstructed(described !== undefined && described.isBroken !== true);
  if (described === undefined)
    log.warn('volume of an unknown kind is left alone', {
      podUID: volume.uid,
      plugin: directory,
      volume: volume.specName,
    });
  return described;
}

const isOf = ({ plugin }: FoundVolume, note: FoundNote): boolean =>
  plugin !== undefined && escapePlugin(plugin.name) === note.plugin;

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
