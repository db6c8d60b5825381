// fsGroup: gives a volume to the pod's group. Children before their directory, so that an interrupted walk leaves the
// root unmarked and is done again. Files are pinned by descriptor and links are never followed. A file that will not change
// hands (NFS without rights for root, an immutable one, one that is gone meanwhile) keeps no pod from its volume.
import type { Stats } from 'node:fs';
import type { EntryName } from '../host/files/entry-name.ts';
import { OpenDir } from '../host/files/open-dir.ts';
import { walkTree } from '../host/files/walk-tree.ts';

export type Ownership = {
  readonly gid: number;
  /** Volumes whose content the kubelet writes: the group may read, not write. */
  readonly readOnly: boolean;
  readonly changePolicy: 'Always' | 'OnRootMismatch';
};

const S_ISGID = 0o2000;
const PERMISSIONS = 0o7777;

/** The mode a file or directory gets. */
export function modeForGroup(mode: number, isDirectory: boolean, readOnly: boolean): number {
  const wanted = (mode & PERMISSIONS) | (readOnly ? 0o440 : 0o660);
  return isDirectory ? wanted | S_ISGID | 0o110 : wanted;
}

/** Whether the root of a volume shows that the whole of it was given to the group before. */
export const rootMatches = (stat: Pick<Stats, 'gid' | 'mode'>, how: Ownership): boolean =>
  stat.gid === how.gid && (stat.mode & PERMISSIONS) === modeForGroup(stat.mode, true, how.readOnly);

export async function giveToGroup(
  root: string,
  how: Ownership,
  signal: AbortSignal,
  /** Every file and directory on the way. */
  onFile: () => void = () => undefined,
  /** One of them stays as it is. */
  onRefused: (err: unknown) => void = () => undefined,
): Promise<void> {
  await OpenDir.using(root, async (dir) => {
    const stat = await dir.stat();
    if (how.changePolicy === 'OnRootMismatch' && rootMatches(stat, how)) return;
    const attempt = (work: () => Promise<void>): Promise<void> => work().catch(onRefused);
    await walkTree(
      dir,
      stat,
      {
        entry: async (parent, name, seen) => {
          if (seen.isDirectory()) return;
          if (!isGiven(seen, how)) await attempt(() => changeEntry(parent, name, seen, how));
          onFile();
        },
        leave: async (own, seen) => {
          onFile();
          await changeDirectory(own, seen, how, attempt);
        },
      },
      signal,
    );
  });
}

/** Most files are, when a pod comes back to its volume: one look at each is enough. */
const isGiven = (stat: Stats, how: Ownership): boolean =>
  stat.gid === how.gid &&
  (stat.isSymbolicLink() || (stat.mode & PERMISSIONS) === modeForGroup(stat.mode, false, how.readOnly));

async function changeDirectory(
  dir: OpenDir,
  stat: Stats,
  how: Ownership,
  attempt: (work: () => Promise<void>) => Promise<void>,
): Promise<void> {
  if (stat.gid !== how.gid) await attempt(async () => dir.chown(stat.uid, how.gid));
  const mode = modeForGroup(stat.mode, true, how.readOnly);
  if ((stat.mode & PERMISSIONS) !== mode || stat.gid !== how.gid) await attempt(async () => dir.chmod(mode));
}

async function changeEntry(dir: OpenDir, name: EntryName, seen: Stats, how: Ownership): Promise<void> {
  if (seen.isSymbolicLink()) return dir.lchown(name, seen.uid, how.gid);
  const file = await dir.pin(name);
  try {
    const stat = await file.stat();
    // It became a link since it was looked at: the next write will see it as one.
    if (stat.isSymbolicLink()) return;
    if (stat.gid !== how.gid) await file.chown(stat.uid, how.gid);
    const mode = modeForGroup(stat.mode, false, how.readOnly);
    if ((stat.mode & PERMISSIONS) !== mode || stat.gid !== how.gid) await file.chmod(mode);
  } finally {
    await file.close();
  }
}
