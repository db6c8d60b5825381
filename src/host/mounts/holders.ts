// Who keeps a mount busy: processes whose mount namespace still has it, or who stand in it or hold a file open there.
// Everything is read from /proc; links are read, never followed, so a dead filesystem cannot stop the search.
import { readdir, readFile, readlink } from 'node:fs/promises';
import { parseMountInfo, type MountEntry } from './mount-table.ts';

export type MountHolder = { readonly pid: number; readonly command: string; readonly how: 'namespace' | 'open' };

const MAX_PROCESSES = 5_000;
const MAX_DESCRIPTORS = 1_024;
const MAX_HOLDERS = 8;

/** Up to eight processes that keep `mount` busy, others' namespaces included. */
export async function holdersOf(mount: MountEntry, signal: AbortSignal): Promise<MountHolder[]> {
  const holders: MountHolder[] = [];
  const own = await readlink('/proc/self/ns/mnt').catch(() => '');
  const checked = new Map<string, boolean>();
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).slice(0, MAX_PROCESSES);
  for (const pid of pids) {
    signal.throwIfAborted();
    if (holders.length >= MAX_HOLDERS) break;
    const how = await holdsHow(pid, mount, own, checked);
    if (how !== undefined) holders.push({ pid: Number(pid), command: await commandOf(pid), how });
  }
  return holders;
}

/** `pid 12 (sh, open files), pid 40 (pause, mount namespace)` */
export const describeHolders = (holders: readonly MountHolder[]): string =>
  holders.map((h) => `pid ${h.pid} (${h.command}, ${h.how === 'open' ? 'open files' : 'mount namespace'})`).join(', ');

async function holdsHow(
  pid: string,
  mount: MountEntry,
  ownNamespace: string,
  checked: Map<string, boolean>,
): Promise<MountHolder['how'] | undefined> {
  const namespace = await readlink(`/proc/${pid}/ns/mnt`).catch(() => '');
  if (namespace !== '' && namespace !== ownNamespace) {
    let has = checked.get(namespace);
    if (has === undefined) {
      const text = await readFile(`/proc/${pid}/mountinfo`, 'latin1').catch(() => '');
      has = parseMountInfo(text).some((entry) => entry.device === mount.device && entry.root === mount.root);
      checked.set(namespace, has);
    }
    return has ? 'namespace' : undefined;
  }
  const inside = (target: string): boolean => target === mount.target || target.startsWith(`${mount.target}/`);
  for (const link of ['cwd', 'root']) {
    if (inside(await readlink(`/proc/${pid}/${link}`).catch(() => ''))) return 'open';
  }
  const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
  for (const fd of descriptors.slice(0, MAX_DESCRIPTORS)) {
    if (inside(await readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''))) return 'open';
  }
  return undefined;
}

const commandOf = async (pid: string): Promise<string> =>
  (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '?')).trim();
