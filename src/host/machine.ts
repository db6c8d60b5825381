// What the machine is made of: processors, memory, huge pages, swap, process ids. Read from /proc and /sys on demand;
// nothing is cached, so a caller decides how fresh it wants its facts.
import { readdirSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { tryParseCpuSet } from '../core/cpuset.ts';
import { errnoOf } from '../lib/errors.ts';
import { kernelFiles } from './kernel-files.ts';

export type HugePagePool = { readonly sizeBytes: number; readonly pages: number };

export type MachineFacts = {
  /** Online logical processors. */
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Smallest page size first. */
  readonly hugePages: readonly HugePagePool[];
  readonly swapBytes: number;
  /** Whether any swap device or file is in use. */
  readonly swapOn: boolean;
  /** How many processes and threads the kernel will number. */
  readonly maxPids: number;
  readonly kernelRelease: string;
};

/** `root` is where /proc and /sys are found: `/` but for tests. */
export async function readMachine(root = '/'): Promise<MachineFacts> {
  const at = (path: string): string => join(root, path);
  const [meminfo, cpus, hugePages, swaps, pidMax, threadsMax, release] = await Promise.all([
    kernelFiles.text(at('proc/meminfo')),
    onlineCpus(root),
    hugePagePools(root),
    readIfAny(at('proc/swaps')),
    readIfAny(at('proc/sys/kernel/pid_max')),
    readIfAny(at('proc/sys/kernel/threads-max')),
    readIfAny(at('proc/sys/kernel/osrelease')),
  ]);
  const limits = [pidMax, threadsMax].map((text) => Number.parseInt(text, 10)).filter((n) => n > 0);
  return {
    cpus,
    ...memoryOf(meminfo),
    hugePages,
    swapOn: swaps.split('\n').filter((line) => line.trim() !== '').length > 1,
    maxPids: limits.length === 0 ? 0 : Math.min(...limits),
    kernelRelease: release.trim(),
  };
}

/** The same machine with the memory that it has now: what is above the kernel may take some and give it back. */
export const withMemoryNow = async (facts: MachineFacts): Promise<MachineFacts> => ({
  ...facts,
  ...memoryOf(await kernelFiles.text('/proc/meminfo')),
});

const memoryOf = (meminfo: string): Pick<MachineFacts, 'memoryBytes' | 'swapBytes'> => ({
  memoryBytes: kilobytesOf(meminfo, 'MemTotal') * 1024,
  swapBytes: kilobytesOf(meminfo, 'SwapTotal') * 1024,
});

const kilobytesOf = (meminfo: string, key: string): number =>
  Number(new RegExp(`^${key}:\\s+(\\d+) kB$`, 'm').exec(meminfo)?.[1] ?? 0);

async function onlineCpus(root: string): Promise<number> {
  const online = tryParseCpuSet((await readIfAny(join(root, 'sys/devices/system/cpu/online'))).trim());
  if (online !== undefined && online.size > 0) return online.size;
  const cpuinfo = await readIfAny(join(root, 'proc/cpuinfo'));
  return Math.max(1, [...cpuinfo.matchAll(/^processor\s*:/gm)].length);
}

async function hugePagePools(root: string): Promise<readonly HugePagePool[]> {
  const base = join(root, 'sys/kernel/mm/hugepages');
  const names = await kernelFiles
    .answer(
      () => readdir(base),
      () => readdirSync(base),
    )
    .catch((err: unknown) => {
      if (errnoOf(err) === 'ENOENT') return [];
      throw err;
    });
  const pools = await Promise.all(
    names.map(async (name): Promise<HugePagePool | undefined> => {
      const kb = /^hugepages-(\d+)kB$/.exec(name)?.[1];
      if (kb === undefined) return undefined;
      const pages = Number.parseInt(await readIfAny(join(base, name, 'nr_hugepages')), 10);
      return { sizeBytes: Number(kb) * 1024, pages: Number.isNaN(pages) ? 0 : pages };
    }),
  );
  return pools.filter((p) => p !== undefined).sort((a, b) => a.sizeBytes - b.sizeBytes);
}

async function readIfAny(path: string): Promise<string> {
  try {
    return await kernelFiles.text(path);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return '';
    throw err;
  }
}
