// What /proc says about processes, interfaces, disks and the machine's processors. Parsers are pure; readers take what
// is gone for nothing, since processes end while one looks at them.
import { readdirSync, readlinkSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { nextTurn } from '../lib/clock.ts';
import { errnoOf } from '../lib/errors.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { kernelFiles } from './kernel-files.ts';

export type InterfaceCounters = {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxPackets: number;
  readonly rxErrors: number;
  readonly rxDropped: number;
  readonly txBytes: number;
  readonly txPackets: number;
  readonly txErrors: number;
  readonly txDropped: number;
};

/** Loopback and the host's ends of containers' cables would count traffic twice. */
const NOT_COUNTED = ['lo', 'veth', 'docker', 'nerdctl'];

/** /proc/<pid>/net/dev, in its order. */
export function parseNetDev(text: string): readonly InterfaceCounters[] {
  const found: InterfaceCounters[] = [];
  for (const line of text.split('\n').slice(2)) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).trim();
    const numbers = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/)
      .map(Number);
    if (colon < 0 || numbers.length < 12 || numbers.some(Number.isNaN)) continue;
    if (NOT_COUNTED.some((prefix) => name.toLowerCase().startsWith(prefix))) continue;
    const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0] = numbers;
    const [txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] = numbers.slice(8);
    found.push({ name, rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped });
  }
  return found;
}

/** The interfaces of the network namespace a process is in; undefined when it is gone. */
export async function interfacesOf(pid: number): Promise<readonly InterfaceCounters[] | undefined> {
  const text = await textOf(`/proc/${pid}/net/dev`);
  return text === undefined ? undefined : parseNetDev(text);
}

export type DiskCounters = {
  readonly name: string;
  readonly reads: number;
  readonly readsMerged: number;
  readonly sectorsRead: number;
  readonly readMs: number;
  readonly writes: number;
  readonly writesMerged: number;
  readonly sectorsWritten: number;
  readonly writeMs: number;
  readonly ioInProgress: number;
  readonly ioMs: number;
  readonly weightedIoMs: number;
};

/** /proc/diskstats by `major:minor`. */
export function parseDiskstats(text: string): ReadonlyMap<string, DiskCounters> {
  const disks = new Map<string, DiskCounters>();
  for (const line of text.split('\n')) {
    const [major, minor, name, ...rest] = line.trim().split(/\s+/);
    if (major === undefined || minor === undefined || name === undefined || rest.length < 11) continue;
    const [reads = 0, readsMerged = 0, sectorsRead = 0, readMs = 0, ...more] = rest.map(Number);
    const [writes = 0, writesMerged = 0, sectorsWritten = 0, writeMs = 0, ...last] = more;
    const [ioInProgress = 0, ioMs = 0, weightedIoMs = 0] = last;
    disks.set(`${major}:${minor}`, {
      name,
      reads,
      readsMerged,
      sectorsRead,
      readMs,
      writes,
      writesMerged,
      sectorsWritten,
      writeMs,
      ioInProgress,
      ioMs,
      weightedIoMs,
    });
  }
  return disks;
}

export const readDiskstats = async (): Promise<ReadonlyMap<string, DiskCounters>> =>
  parseDiskstats((await textOf('/proc/diskstats')) ?? '');

/** The number that the pattern captures; 0 where there is none. */
const numberIn = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0);

/** How many tasks there are: the number behind the slash of /proc/loadavg. */
export const parseTasks = (loadavg: string): number => numberIn(loadavg, / \d+\/(\d+) /);
export const readTasks = async (): Promise<number> => parseTasks((await textOf('/proc/loadavg')) ?? '');

/** When the machine started, in milliseconds since the epoch. */
export const parseBootMs = (stat: string): number => numberIn(stat, /^btime (\d+)$/m) * 1000;
export const readBootMs = async (): Promise<number> => parseBootMs((await textOf('/proc/stat')) ?? '');

/** Swap in use, in bytes. */
export function parseSwapUsed(meminfo: string): number {
  const kilobytes = (key: string): number => numberIn(meminfo, new RegExp(`^${key}:\\s+(\\d+) kB$`, 'm'));
  return Math.max(0, kilobytes('SwapTotal') - kilobytes('SwapFree')) * 1024;
}
export const readSwapUsed = async (): Promise<number> => parseSwapUsed((await textOf('/proc/meminfo')) ?? '');

export type CpuTopology = {
  readonly cores: number;
  readonly sockets: number;
};

/** Physical cores and sockets from /proc/cpuinfo; where it names none, each processor is a core on one socket. */
export function parseTopology(cpuinfo: string): CpuTopology {
  const cores = new Set<string>();
  const sockets = new Set<string>();
  const blocks = cpuinfo.split(/\n\s*\n/).filter((block) => /^processor\s*:/m.test(block));
  for (const [i, block] of blocks.entries()) {
    const field = (name: string): string | undefined => new RegExp(`^${name}\\s*:\\s*(\\d+)`, 'm').exec(block)?.[1];
    const socket = field('physical id') ?? '0';
    sockets.add(socket);
    cores.add(`${socket}:${field('core id') ?? i}`);
  }
  const atLeastOne = (set: ReadonlySet<string>): number => Math.max(1, set.size);
  return {
    cores: atLeastOne(cores),
    sockets: atLeastOne(sockets),
  };
}
export const readTopology = async (): Promise<CpuTopology> => parseTopology((await textOf('/proc/cpuinfo')) ?? '');

/** The soft limit of open files from /proc/<pid>/limits; -1 is none. */
export function parseOpenFilesLimit(limits: string): number | undefined {
  const soft = /^Max open files\s+(\S+)/m.exec(limits)?.[1];
  if (soft === undefined) return undefined;
  return soft === 'unlimited' ? -1 : Number(soft);
}
export const openFilesLimitOf = async (pid: number): Promise<number | undefined> =>
  parseOpenFilesLimit((await textOf(`/proc/${pid}/limits`)) ?? '');

export type Descriptors = { readonly files: number; readonly sockets: number };

/** About a millisecond's worth. A proxy has a hundred thousand. */
const LINKS_AT_A_TIME = 256;
const links = new Semaphore(1);

/**
 * What these processes have open. One that ended meanwhile counts nothing. The kernel has the links in memory: a call to the
 * file threads for each would cost several times as much, and keep everybody else from them.
 */
export async function descriptorsOf(pids: readonly number[], signal: AbortSignal): Promise<Descriptors> {
  let files = 0;
  let sockets = 0;
  for (const pid of pids) {
    const dir = `/proc/${pid}/fd`;
    const list = kernelFiles.answer(
      () => readdir(dir),
      () => readdirSync(dir),
    );
    const names = await list.catch(ifGone<string[]>([]));
    files += names.length;
    for (let at = 0; at < names.length; at += LINKS_AT_A_TIME)
      sockets += await links.run(signal, async () => {
        if (at > 0) await nextTurn();
        return names.slice(at, at + LINKS_AT_A_TIME).filter((name) => isSocket(`${dir}/${name}`)).length;
      });
  }
  return { files, sockets };
}

function isSocket(link: string): boolean {
  try {
    return readlinkSync(link).startsWith('socket');
  } catch (err) {
    return ifGone(false)(err);
  }
}

/** EACCES: a process that is not ours to look into (another user namespace). */
const isGone = (err: unknown): boolean => ['ENOENT', 'ESRCH', 'EACCES', 'EINVAL'].includes(errnoOf(err) ?? '');

const ifGone =
  <T>(instead: T) =>
  (err: unknown): T => {
    if (isGone(err)) return instead;
    throw err;
  };

const textOf = (path: string): Promise<string | undefined> =>
  kernelFiles.text(path).catch(ifGone<string | undefined>(undefined));
