// Removing a cgroup: directories bottom up, and the processes that hold them. Shared by v1 and v2.
import { existsSync, readdirSync } from 'node:fs';
import { readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import type { EntryName } from '../files/entry-name.ts';
import { entryOf, type Path } from '../files/file-calls.ts';
import { kernelFiles } from '../kernel-files.ts';

const WITH_TYPES = { encoding: 'buffer', withFileTypes: true } as const;
const TRIES = 5;
const FIRST_WAIT_MS = 5;

/** Names right below that are UTF-8, as those of pods and containers are; empty when the cgroup is gone. */
export const childDirs = async (dir: string): Promise<string[]> =>
  (await namesBelow(dir)).filter((name) => typeof name === 'string');

/** A container may make cgroups below its own, by any name. */
async function namesBelow(dir: Path): Promise<EntryName[]> {
  try {
    const entries = await kernelFiles.answer(
      () => readdir(dir, WITH_TYPES),
      () => readdirSync(dir, WITH_TYPES),
    );
    return entries.map(entryOf).flatMap(({ name, isDirectory }) => (isDirectory ? [name] : []));
  } catch (err) {
    if (isGone(err)) return [];
    throw err;
  }
}

const pathIn = (dir: Path, name: EntryName): Path =>
  typeof dir === 'string' && typeof name === 'string'
    ? join(dir, name)
    : Buffer.concat([Buffer.from(dir), Buffer.from('/'), Buffer.from(name)]);

/** Processes in `dir` and below; threads are not listed apart. */
export async function pidsBelow(dir: Path): Promise<number[]> {
  const [own, children] = await Promise.all([procsOf(dir), namesBelow(dir)]);
  const below = await Promise.all(children.map((child) => pidsBelow(pathIn(dir, child))));
  return [...own, ...below.flat()];
}

async function procsOf(dir: Path): Promise<number[]> {
  try {
    const text = await kernelFiles.text(pathIn(dir, 'cgroup.procs'));
    return text.split('\n').filter(Boolean).map(Number);
  } catch (err) {
    if (isGone(err)) return [];
    throw err;
  }
}

export type RemoveOptions = {
  readonly clock: Clock;
  /** The same cgroup in each hierarchy. */
  readonly dirs: readonly string[];
  /** Kills everything below, once. */
  readonly kill: () => Promise<void>;
};

/** Tries the plain removal first: the runtime has usually emptied the cgroup already. */
export async function removeCgroup({ clock, dirs, kill }: RemoveOptions, signal: AbortSignal): Promise<void> {
  // A pod's cgroup is looked for in every tier and is in one. Where one hierarchy has it, nearly always all do.
  const [first] = dirs;
  let left = first !== undefined && existsSync(first) ? dirs : dirs.filter((dir) => existsSync(dir));
  let waitMs = FIRST_WAIT_MS;
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted();
    const gone = await Promise.all(left.map(removeDir));
    left = left.filter((_, i) => gone[i] === false);
    if (left.length === 0) return;
    if (attempt === TRIES)
      throw new KubeletError('conflict', `failed to remove cgroup ${left[0] ?? ''}: device or resource busy`);
    await kill();
    await clock.sleep(waitMs, signal);
    waitMs *= 3;
  }
}

/** False when something still holds it. */
async function removeDir(dir: Path): Promise<boolean> {
  try {
    await rmdir(dir);
    return true;
  } catch (err) {
    if (isGone(err)) return true;
    if (errnoOf(err) !== 'EBUSY' && errnoOf(err) !== 'ENOTEMPTY') throw err;
  }
  const children = await namesBelow(dir);
  if (children.length === 0) return false;
  const gone = await Promise.all(children.map((child) => removeDir(pathIn(dir, child))));
  if (gone.includes(false)) return false;
  try {
    await rmdir(dir);
    return true;
  } catch (err) {
    if (isGone(err)) return true;
    if (errnoOf(err) === 'EBUSY') return false;
    throw err;
  }
}

/** Never the kubelet itself nor init, wherever somebody put them. */
export function killPids(pids: Iterable<number>): void {
  for (const pid of new Set(pids)) {
    if (pid <= 1 || pid === process.pid) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch (err) {
      if (errnoOf(err) !== 'ESRCH') throw err;
    }
  }
}

export const isGone = (err: unknown): boolean => errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENODEV';
