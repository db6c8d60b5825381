// Notes about disks that this node attaches itself, beside the pod they are attached for: `plugins/<plugin>/<name>.json`.
// A note is written before anything happens and removed when the disk is released, so that a later run finds what an earlier
// one began. The pod's directory stays while it has one.
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { VolumeMode } from '../core/storage.ts';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import { errnoOf } from '../lib/errors.ts';
import { element, escapePlugin, type VolumeLayout } from './layout.ts';
import type { VolumeOnDisk } from './plugin.ts';

export type AttachNote<Config> = { readonly config: Config; readonly volumeMode: VolumeMode };
/** `plugin`: the name of its directory. */
export type FoundNote = { readonly plugin: string; readonly specName: string; readonly volumeMode: VolumeMode };

const SUFFIX = '.json';

const fileOf = (layout: VolumeLayout, plugin: string, { uid, specName }: VolumeOnDisk): string =>
  join(layout.pluginsDir(uid), escapePlugin(plugin), `${element(specName)}${SUFFIX}`);

/** Undefined where there is none; throws for one that cannot be read. */
export async function readNote(
  layout: VolumeLayout,
  plugin: string,
  volume: VolumeOnDisk,
): Promise<AttachNote<unknown> | undefined> {
  try {
    return parse(await readFile(fileOf(layout, plugin, volume), 'utf8'));
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}

export async function writeNote(
  layout: VolumeLayout,
  plugin: string,
  volume: VolumeOnDisk,
  config: unknown,
): Promise<void> {
  const file = fileOf(layout, plugin, volume);
  await mkdir(dirname(file), { recursive: true, mode: 0o750 });
  await writeFileAtomic(file, JSON.stringify({ config, volumeMode: volume.volumeMode }), 0o600);
}

export const removeNote = (layout: VolumeLayout, plugin: string, volume: VolumeOnDisk): Promise<void> =>
  rm(fileOf(layout, plugin, volume), { force: true });

/** All notes of a pod. One that cannot be read counts as that of a file system. */
export async function notesOf(layout: VolumeLayout, uid: string): Promise<FoundNote[]> {
  const found: FoundNote[] = [];
  for (const plugin of await namesIn(layout.pluginsDir(uid))) {
    const dir = join(layout.pluginsDir(uid), plugin);
    for (const name of (await namesIn(dir)).filter((file) => file.endsWith(SUFFIX))) {
      const text = await readFile(join(dir, name), 'utf8').catch(() => 'null');
      found.push({ plugin, specName: name.slice(0, -SUFFIX.length), volumeMode: modeOf(text) });
    }
  }
  return found;
}

function modeOf(text: string): VolumeMode {
  try {
    return parse(text).volumeMode;
  } catch {
    return 'Filesystem';
  }
}

/** An older version wrote no mode. A device that was handed out is found by its link. */
function parse(text: string): AttachNote<unknown> {
  const note = JSON.parse(text) as { config?: unknown; volumeMode?: unknown } | null;
  return { config: note?.config, volumeMode: note?.volumeMode === 'Block' ? 'Block' : 'Filesystem' };
}

async function namesIn(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return [];
    throw err;
  }
}
