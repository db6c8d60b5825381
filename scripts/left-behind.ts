// What a test run may leave on a machine: processes, cgroups, mounts, network namespaces and links, files, and kernel settings
// that a kubelet changes. A process belongs to the run when its environment or command line names the run's folder.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
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

const linkOf = (path: string): string => {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // closed, or the process has ended
  }
};

/** Everything that processes outside this run name or hold: another run on the machine uses what is named there. */
function usedByOthers(folder: string): { readonly pids: ReadonlySet<string>; readonly text: string } {
  const own = new Set(processesOf(folder).map((line) => line.split(' ')[1]));
  const pids = namesIn('/proc').filter((name) => /^\d+$/.test(name) && !own.has(name) && Number(name) !== process.pid);
  const texts = pids.flatMap((pid) => [
    read(`/proc/${pid}/cmdline`),
    read(`/proc/${pid}/environ`),
    read(`/proc/${pid}/cgroup`),
    linkOf(`/proc/${pid}/cwd`),
    ...namesIn(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`)),
  ]);
  return { pids: new Set(pids), text: [...texts, read('/proc/net/unix')].join('\n') };
}

/** The name in a trace that belongs to one run: a folder below /tmp, or a cgroup or link with the process that made it. */
function isUsedByOthers(trace: string, { pids, text }: ReturnType<typeof usedByOthers>): boolean {
  const name = /\bkts[\w.-]+/.exec(trace)?.[0];
  if (name === undefined) return false;
  return text.includes(name) || (name.match(/\d+/g) ?? []).some((number) => pids.has(number));
}

/** The traces that are new since `before`, after they had time to go. Those of another run in progress are not counted. */
export async function leftBehind(folder: string, before: ReadonlySet<string>): Promise<string[]> {
  const end = performance.now() + SETTLE_MS;
  for (;;) {
    const others = usedByOthers(folder);
    const left = [...traces(folder)].filter((trace) => !before.has(trace) && !isUsedByOthers(trace, others));
    if (left.length === 0 || performance.now() > end) return left;
    await sleep(200);
  }
}
