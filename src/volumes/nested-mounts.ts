// Other volumes may be mounted inside one that the kubelet writes. Containers see that one read-only, so nobody but the
// kubelet can make the directories to mount on.
import { posix } from 'node:path';
import { containersOf, type Container, type Pod, type VolumeMount } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { checkPathLength } from '../host/files/beneath.ts';
import { OpenDir } from '../host/files/open-dir.ts';

const MODE = 0o755;

/** Where volumes are mounted beneath this one, relative to it. What is mounted beneath those is theirs. */
export function nestedMountPoints(pod: Pod, volume: string): readonly string[] {
  const found = new Set<string>();
  for (const { container } of containersOf(pod)) for (const path of nestedIn(container, volume)) found.add(path);
  return [...found];
}

const cleaned = (path: string): string => posix.normalize(path).replace(/(?<=.)\/$/, '');

function nestedIn({ volumeMounts = [] }: Container, volume: string): string[] {
  for (const { mountPath } of volumeMounts) checkPathLength(mountPath);
  const all = volumeMounts.map((mount) => cleaned(mount.mountPath)).sort();
  const nested: string[] = [];
  for (const mount of volumeMounts) {
    if (mount.name !== volume) continue;
    const own = cleaned(mount.mountPath);
    if (own.startsWith('../')) throw new KubeletError('invalid', `invalid container mount point ${own}`);
    const beneath = all.filter((path) => path.startsWith(`${own}/`));
    const nearest = beneath.filter((path) => !beneath.some((other) => path.startsWith(`${other}/`)));
    nested.push(...nearest.map((path) => path.slice(own.length + 1)));
  }
  return nested;
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
  const isOwn = (point: string): boolean => files.has(point) && isFileMountedAt(pod, volume, point);
  const missing = nestedMountPoints(pod, volume).filter((point) => !isOwn(point));
  if (missing.length > 0)
    await OpenDir.using(root, async (dir) => {
      for (const point of missing) await makeDirs(dir, point);
    });
  return new Set(missing.map((point) => point.split('/', 1)[0] ?? ''));
}

/** Whether it may be a file that some container has there: the part of a volume, or anything of the node. */
function isFileMountedAt(pod: Pod, volume: string, point: string): boolean {
  const ofHost = new Set(pod.spec.volumes?.filter((v) => v.hostPath !== undefined).map((v) => v.name));
  const mayBeFile = ({ name, subPath = '', subPathExpr = '' }: VolumeMount): boolean =>
    subPath !== '' || subPathExpr !== '' || ofHost.has(name);
  return [...containersOf(pod)].some(({ container: { volumeMounts = [] } }) => {
    const points = volumeMounts.filter((m) => m.name === volume).map((m) => `${cleaned(m.mountPath)}/${point}`);
    return volumeMounts.some((mount) => points.includes(cleaned(mount.mountPath)) && mayBeFile(mount));
  });
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
