// Finding processes by what they were started with. A pid alone may have been given to somebody else since: the start
// time goes with it.
import { readdir, readFile } from 'node:fs/promises';
import { systemClock } from '../../lib/clock.ts';
import type { Paths } from './paths.ts';

export type ProcessId = { readonly pid: number; readonly startTime: string };

/** The boot and field 22 of /proc/PID/stat: together with the pid nobody else ever has them. */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (stat === '' || fields[0] === 'Z') return undefined;
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '');
  return `${boot.trim()} ${fields[19] ?? ''}`;
}

export const isAlive = async (id: ProcessId): Promise<boolean> => (await startTimeOf(id.pid)) === id.startTime;

/** Processes with `needle` in their command line, but never this one. A kubelet shows blanks between its arguments. */
export async function processesWith(needle: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.replaceAll('\0', ' ').includes(needle.replaceAll('\0', ' '))) found.push(pid);
  }
  return found;
}

/** How the children of a supervisor are told from everybody else's processes: by whole arguments, never by a word. */
const childNeedles = (paths: Paths): readonly string[] => [
  `\0--config=${paths.kubeletConfig}\0`,
  `api-process.ts\0${paths.directory}\0`,
  `\0--config\0${paths.containerdConfig}\0`,
  `\0--directory=${paths.csiVolumes}\0`,
];

export async function childProcesses(paths: Paths): Promise<number[]> {
  return (await Promise.all(childNeedles(paths).map(processesWith))).flat();
}

/** Asks, waits, then insists. */
export async function endProcess(pid: number, patienceMs: number): Promise<void> {
  const startTime = await startTimeOf(pid);
  if (startTime === undefined) return;
  send(pid, 'SIGTERM');
  const end = systemClock.monotonic() + patienceMs;
  while (await isAlive({ pid, startTime })) {
    if (systemClock.monotonic() > end) send(pid, 'SIGKILL');
    await systemClock.sleep(25, new AbortController().signal);
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended by itself.
  }
}
