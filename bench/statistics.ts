// Percentiles, and what /proc says about a process.
import { readFileSync } from 'node:fs';

/** The value below which `share` (0…1) of the sample lies; NaN for an empty one. */
export function percentile(sample: readonly number[], share: number): number {
  const sorted = [...sample].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? sorted[0] ?? Number.NaN;
}

export const median = (sample: readonly number[]): number => percentile(sample, 0.5);

const TICKS_PER_SECOND = 100;

/** Processor time a process has used so far, threads included. */
export function cpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}

/** Processor time the whole machine has used so far, whoever used it. */
export function busyMs(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] =
    readFileSync('/proc/stat', 'utf8').split('\n')[0]?.split(/\s+/).slice(1).map(Number) ?? [];
  return ((user + nice + system + irq + softirq) * 1000) / TICKS_PER_SECOND;
}

/** Resident memory in megabytes (10^6). */
export function residentMb(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return (Number(kib) * 1024) / 1e6;
}

/** Megabytes (10^6): all pages, those of no file, and all with what is shared divided by those who share it. */
export function memoryMb(pid: number): { resident: number; anonymous: number; proportional: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const mb = (name: string): number => (Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]) * 1024) / 1e6;
  return { resident: mb('Rss'), anonymous: mb('Anonymous'), proportional: mb('Pss') };
}

/** How busy the machine was lately: processes that wanted to run, over the last minute. */
export const loadAverage = (): number => Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0]);

/** Runs `work` on all items, at most `limit` at a time, oldest first. */
export async function inParallel<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: Math.min(limit, queue.length) }, async () => {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
    }),
  );
}

/** Rejects when somebody wants this process to end: what was started has to be taken away first. */
export const interrupted = (): Promise<never> =>
  new Promise((_, reject) => {
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'])
      process.once(name, () => reject(new Error(`stopped by ${name}`)));
  });
