// Whose a directory is. `up` starts only in one that is empty or its own; `reset` removes only what `up` and its processes make.
import { readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { errnoOf, isFault, KubeletError } from '../../lib/errors.ts';
import { childProcesses } from './own-processes.ts';
import type { Paths } from './paths.ts';
import { readSettings, salvagedSettings, settingsProblem } from './settings.ts';
import { supervisors } from './state.ts';

export type Owner = 'nobody' | 'kubelet-dev' | 'others';

/** In the root of a file system of its own. */
const LOST_AND_FOUND = 'lost+found';
const TEMPORARY = /\.\d+-\d+-[0-9a-f]{12}\.tmp$/;

/** The names of a cluster in its directory. */
function ownNames(paths: Paths): ReadonlySet<string> {
  const all = Object.values(paths).filter((path) => typeof path === 'string' && path !== paths.directory);
  return new Set(all.map((path) => relative(paths.directory, path as string).split(sep)[0] ?? ''));
}

async function namesIn({ directory }: Paths): Promise<readonly string[]> {
  const names = await readdir(directory);
  return names.filter((name) => name !== LOST_AND_FOUND);
}

/** Nobody's is a directory that is empty or not there; ours has usable settings or other proof of a cluster. */
export async function ownerOf(paths: Paths): Promise<Owner> {
  try {
    const names = await namesIn(paths);
    if (names.every((name) => TEMPORARY.test(name))) return 'nobody';
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return 'nobody';
    throw settingsProblem(paths, err);
  }
  return (await hasSettings(paths)) || (await hasProof(paths)) ? 'kubelet-dev' : 'others';
}

const hasSettings = (paths: Paths): Promise<boolean> =>
  readSettings(paths).then(
    (settings) => settings !== undefined,
    (err: unknown) => {
      if (isFault(err, 'invalid')) return false;
      throw err;
    },
  );

/** Of a cluster whose settings are damaged or lost. */
async function hasProof(paths: Paths): Promise<boolean> {
  if ((await salvagedSettings(paths)) !== undefined) return true;
  const state = await readFile(paths.supervisor, 'utf8').catch(() => '');
  if (/"startTime":.*"phase":.*"children":/.test(state)) return true;
  return (await supervisors(paths)).length + (await childProcesses(paths)).length > 0;
}

export const notOurs = ({ directory }: Paths, consequence: string): KubeletError =>
  new KubeletError('conflict', `${directory} has files and is no cluster of kubelet-dev: ${consequence}`);

/**
 * Removes the files of a cluster, its settings last, so that an interrupted removal can be repeated, and the directory, unless
 * it has other files. Returns the names of those.
 */
export async function removeFiles(paths: Paths): Promise<readonly string[]> {
  const own = ownNames(paths);
  const isOwn = (name: string): boolean => own.has(name.replace(TEMPORARY, ''));
  const remove = (name: string): Promise<void> => rm(join(paths.directory, name), { recursive: true, force: true });
  const settings = relative(paths.directory, paths.settings);
  for (const name of await namesIn(paths)) if (isOwn(name) && name !== settings) await remove(name);
  await remove(settings);
  // A file system of its own cannot be removed.
  await rmdir(paths.directory).catch(() => undefined);
  return namesIn(paths).catch(() => []);
}
