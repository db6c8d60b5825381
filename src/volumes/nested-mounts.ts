// Other volumes may be mounted inside one that the kubelet writes. Containers see that one read-only, so nobody but the
// kubelet can make the directories to mount on.
import { posix } from 'node:path';
import { containersOf, type Container, type Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { checkPathLength } from '../host/files/beneath.ts';
import { OpenDir } from '../host/files/open-dir.ts';

const MODE = 0o755;

/** Where volumes are mounted beneath this one, relative to it. What is mounted beneath those is theirs. */
export const nestedMountPoints = (pod: Pod, volume: string): readonly string[] => [...nestedMounts(pod, volume).keys()];

/** With whether it may be a file that some container has there: the part of a volume, or anything of the node. */
function nestedMounts(pod: Pod, volume: string): ReadonlyMap<string, boolean> {
  const ofHost = new Set(pod.spec.volumes?.filter((v) => v.hostPath !== undefined).map((v) => v.name));
  const found = new Map<string, boolean>();
  for (const { container } of containersOf(pod))
    for (const [path, mayBeFile] of nestedIn(container, volume, ofHost))
      found.set(path, mayBeFile || found.get(path) === true);
  return found;
}

const cleaned = (path: string): string => posix.normalize(path).replace(/(?<=.)\/$/, '');

/** Sorts what is beneath a path right behind it. */
const sortKey = (path: string): string => path.replaceAll('/', '\0');

function* nestedIn(
  { volumeMounts = [] }: Container,
  volume: string,
  ofHost: ReadonlySet<string>,
): Iterable<readonly [string, boolean]> {
  for (const { mountPath } of volumeMounts) checkPathLength(mountPath);
  const owns = new Set(volumeMounts.filter(({ name }) => name === volume).map((mount) => cleaned(mount.mountPath)));
  const mayBeFile = new Map<string, boolean>();
  for (const { name, mountPath, subPath = '', subPathExpr = '' } of volumeMounts) {
    const path = cleaned(mountPath);
    const isPart = subPath !== '' || subPathExpr !== '' || ofHost.has(name);
    mayBeFile.set(path, isPart || mayBeFile.get(path) === true);
  }
  const all = [...mayBeFile.keys()].map((path) => ({ path, key: sortKey(path) }));
  all.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  for (const own of owns) {
    if (own.startsWith('../')) throw new KubeletError('invalid', `invalid container mount point ${own}`);
    const prefix = sortKey(`${own}/`);
    let at = firstFrom(all, prefix);
    for (let next = all[at]; next?.key.startsWith(prefix) === true; next = all[at]) {
      yield [next.path.slice(own.length + 1), mayBeFile.get(next.path) === true];
      // Behind all that is beneath it, which is its own.
      at = firstFrom(all, `${next.key}\u0001`);
    }
  }
}

/** The index of the first path whose key is not before this one. */
function firstFrom(sorted: readonly { readonly key: string }[], key: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle]?.key ?? '') < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Makes them in the volume at `root`. Returns the names in the volume that are directories for it and never links: what
 * the volume has by the same name is hidden, as upstream has it. A directory of its own files would not do: the next
 * change of the volume replaces it, and what is mounted there would be gone.
 */
export async function makeNestedMountPoints(
  root: string,
  pod: Pod,
  volume: string,
  files: ReadonlyMap<string, unknown>,
): Promise<ReadonlySet<string>> {
  // A file can be mounted on a file only.
  const missing = [...nestedMounts(pod, volume)]
    .filter(([point, mayBeFile]) => !(mayBeFile && files.has(point)))
    .map(([point]) => point);
  if (missing.length > 0)
    await OpenDir.using(root, async (dir) => {
      for (const point of missing) await makeDirs(dir, point);
    });
  return new Set(missing.map((point) => point.split('/', 1)[0] ?? ''));
}

/** Holds one directory at a time, however long the path is. */
async function makeDirs(root: OpenDir, path: string): Promise<void> {
  let dir = root;
  try {
    for (const name of path.split('/')) {
      // A link is one of the volume's files, or was until the write that follows.
      if ((await dir.readlink(name)) !== undefined) return;
      const next = await dir.ensureDir(name, MODE);
      if (dir !== root) dir.closeNow();
      dir = next;
    }
  } finally {
    if (dir !== root) dir.closeNow();
  }
}
