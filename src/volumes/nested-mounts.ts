// Other volumes may be mounted inside one that the kubelet writes. Containers see that one read-only, so nobody but the
// kubelet can make the directories to mount on.
import { posix } from 'node:path';
import { containersOf, type Container, type Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
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

/** Makes them in the volume at `root`. Names that the volume's own files have are left to those. */
export async function makeNestedMountPoints(
  root: string,
  pod: Pod,
  volume: string,
  files: ReadonlyMap<string, unknown>,
): Promise<void> {
  const own = new Set([...files.keys()].map((path) => path.split('/', 1)[0]));
  const wanted = nestedMountPoints(pod, volume).map((path) => path.split('/'));
  const missing = wanted.filter(([first]) => !own.has(first));
  if (missing.length > 0)
    await OpenDir.using(root, async (dir) => {
      for (const path of missing) await makeDirs(dir, path);
    });
}

async function makeDirs(dir: OpenDir, [first, ...rest]: readonly string[]): Promise<void> {
  // A link is one of the volume's files, or was until the write that follows.
  if (first === undefined || (await dir.readlink(first)) !== undefined) return;
  const next = await dir.ensureDir(first, MODE);
  try {
    await makeDirs(next, rest);
  } finally {
    await next.close();
  }
}
