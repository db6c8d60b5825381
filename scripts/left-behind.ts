// What a test run may leave on a machine: processes, cgroups, mounts, network namespaces and links, files, and kernel settings
// that a kubelet changes. A process belongs to the run when its environment or command line names the run's folder.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { KERNEL_SETTINGS } from '../src/host/process/host-checks.ts';

const CGROUPS = '/sys/fs/cgroup';
const OURS = /^(kubepods|kts)/;
const PARENT = '/tmp';
const NAMESPACES = '/run/netns';
/** The kernel and the runtime end some things after the program that asked for it. */
const SETTLE_MS = 10_000;

const namesIn = (directory: string): string[] => {
  try {
    return readdirSync(directory);
  } catch {
    return []; // a file, or gone
  }
};
const read = (path: string): string => {
  try {
    return readFileSync(path, 'latin1').trim();
  } catch {
    return ''; // not on this kernel, or the process has ended
  }
};

function processesOf(folder: string): string[] {
  return namesIn('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const command = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
      const isOfRun = command.includes(folder) || read(`/proc/${pid}/environ`).includes(folder);
      return isOfRun && command !== '' ? [`process ${pid} ${command.slice(0, 120)}`] : [];
    });
}

/** Everything there is now, one line each. */
export function traces(folder: string): Set<string> {
  const hierarchies = ['', ...namesIn(CGROUPS)];
  const cgroups = hierarchies.flatMap((h) => namesIn(`${CGROUPS}/${h}`).filter((name) => OURS.test(name)));
  const mounts = read('/proc/self/mountinfo')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.startsWith('/tmp/kts'));
  const links = namesIn('/sys/class/net').filter((name) => OURS.test(name));
  const own = namesIn(folder).filter((name) => !name.startsWith('results-'));
  return new Set([
    ...processesOf(folder),
    ...cgroups.map((name) => `cgroup ${name}`),
    ...mounts.map((point) => `mount ${point}`),
    ...links.map((name) => `link ${name}`),
    ...namesIn(NAMESPACES).map((name) => `network namespace ${name}`),
    ...namesIn(PARENT)
      .filter((name) => name.startsWith('kts-') && `${PARENT}/${name}` !== folder)
      .map((name) => `file ${PARENT}/${name}`),
    ...own.map((name) => `file ${name} in the run's folder`),
    ...Object.keys(KERNEL_SETTINGS).map((name) => `${name} = ${read(`/proc/sys/${name}`)}`),
  ]);
}

/** The traces that are new since `before`, after they had time to go. */
export async function leftBehind(folder: string, before: ReadonlySet<string>): Promise<string[]> {
  const end = performance.now() + SETTLE_MS;
  for (;;) {
    const left = [...traces(folder)].filter((trace) => !before.has(trace));
    if (left.length === 0 || performance.now() > end) return left;
    await sleep(200);
  }
}
