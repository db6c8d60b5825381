// Project quotas of one directory: given an id, asked for its usage, its id taken back. Every call blocks until the disk has
// answered, so this runs in a process of its own. Only accounting: no limit is ever set.
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import { flockExclusiveSync, projectOfSync, projectQuotaStateSync, projectUsageSync, setProjectSync } from '../libc.ts';
import { freeProjects, projectsIn, withoutProject, withProject, type ProjectFiles } from './project-files.ts';
import { replaceFile } from './replace-file.ts';

export type ProjectUsage = { readonly bytes: number; readonly inodes: number };
export type ProjectFilePaths = { readonly projects: string; readonly projid: string };

/** ext4 and XFS, as upstream. */
const FILESYSTEMS = new Set([0xef53, 0x58465342]);
const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_CREAT } = constants;
/** A directory that already has more in it is walked when it is measured, instead of now. */
const MAX_CONTENT = 10_000;
const FILE_MODE = 0o644;

/** Gives the directory an id of its own, the one it has where it has one, and says which. */
export function assignProject(path: string, paths: ProjectFilePaths): number {
  return withOpen(path, O_DIRECTORY, (dir) => {
    checkSupport(path, dir);
    const id = inProjectFiles(paths, (files) => {
      const known = projectsIn(files.projects).get(path);
      if (known !== undefined) return { result: known, files };
      for (const free of freeProjects(files))
        if (isUnused(dir, free)) return { result: free, files: withProject(files, path, free) };
      throw new KubeletError('exhausted', 'no project id is free');
    });
    try {
      if (projectOfSync(dir) !== id) putIntoProject(dir, id);
    } catch (err) {
      removeFromFiles(path, paths);
      throw err;
    }
    return id;
  });
}

/** What is in the directory and belongs to its project; throws if its project is not this one. */
export const projectUsage = (path: string, id: number): ProjectUsage =>
  withOpen(path, O_DIRECTORY, (dir) => {
    const actual = projectOfSync(dir);
    if (actual !== id) throw new KubeletError('conflict', `${path} belongs to project ${actual} instead of ${id}`);
    return usageOrNothing(dir, id);
  });

/** The id may be given to another directory once nothing uses it any more. */
export const clearProject = (path: string, paths: ProjectFilePaths): void => removeFromFiles(path, paths);

function checkSupport(path: string, dir: number): void {
  const { type } = statfsSync(path);
  if (!FILESYSTEMS.has(type)) throw new KubeletError('unimplemented', 'the filesystem has no project quotas');
  try {
    projectQuotaStateSync(dir);
  } catch (cause) {
    throw new KubeletError('unimplemented', 'project quotas are not on', { cause });
  }
}

function isUnused(fd: number, id: number): boolean {
  const { bytes, inodes } = usageOrNothing(fd, id);
  return bytes === 0 && inodes === 0;
}

/** XFS has no record of a project that never used anything. */
function usageOrNothing(fd: number, id: number): ProjectUsage {
  try {
    return projectUsageSync(fd, id);
  } catch (err) {
    if (err instanceof KubeletError && err.kind === 'notFound') return { bytes: 0, inodes: 0 };
    throw err;
  }
}

/**
 * The directory's own id says that its content has it too, so it comes after the content; what was made meanwhile comes
 * last.
 */
function putIntoProject(dir: number, id: number): void {
  const budget = { left: MAX_CONTENT };
  putContent(dir, id, budget);
  setProjectSync(dir, id, true);
  putContent(dir, id, { left: MAX_CONTENT });
}

/** A container may be changing it: names are looked up in open directories only, and no link is followed. */
function putContent(dir: number, id: number, budget: { left: number }): void {
  const device = fstatSync(dir).dev;
  for (const name of readdirSync(`/proc/self/fd/${dir}`, { encoding: 'buffer' })) {
    if (budget.left-- <= 0) throw new KubeletError('exhausted', 'the directory has too much in it');
    const path = Buffer.concat([Buffer.from(`/proc/self/fd/${dir}/`), name]);
    try {
      const entry = lstatSync(path);
      if (entry.dev !== device || !(entry.isFile() || entry.isDirectory())) continue;
      withOpen(path, entry.isDirectory() ? O_DIRECTORY : 0, (fd) => {
        if (entry.isDirectory()) putContent(fd, id, budget);
        if (projectOfSync(fd) !== id) setProjectSync(fd, id, entry.isDirectory());
      });
    } catch (err) {
      // Removed or replaced while we looked.
      if (!['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'].includes(errnoOf(err) ?? '')) throw err;
    }
  }
}

const removeFromFiles = (path: string, paths: ProjectFilePaths): void =>
  inProjectFiles(paths, (files) => ({ result: undefined, files: withoutProject(files, path) }));

/** Changes both files under their locks; each is replaced as a whole, and only when it changed. */
function inProjectFiles<T>(
  paths: ProjectFilePaths,
  change: (files: ProjectFiles) => { readonly result: T; readonly files: ProjectFiles },
): T {
  return withLocked(paths.projects, (projects) =>
    withLocked(paths.projid, (projid) => {
      const before = { projects, projid };
      const { result, files } = change(before);
      // The name first, as upstream: a directory never has an id without one.
      if (files.projid !== projid) replaceFile(paths.projid, files.projid);
      if (files.projects !== projects) replaceFile(paths.projects, files.projects);
      return result;
    }),
  );
}

function withLocked<T>(path: string, run: (text: string) => T): T {
  const fd = openSync(path, O_RDONLY | O_CREAT | O_NOFOLLOW, FILE_MODE);
  try {
    if (!fstatSync(fd).isFile()) throw new KubeletError('invalid', `${path} is not a regular file`);
    flockExclusiveSync(fd);
    return run(readFileSync(path, 'utf8'));
  } finally {
    closeSync(fd);
  }
}

function withOpen<T>(path: string | Buffer, flags: number, run: (fd: number) => T): T {
  const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | flags);
  try {
    return run(fd);
  } finally {
    closeSync(fd);
  }
}
