// How much of the processors nobody used since the last look.
import { readFileSync } from 'node:fs';

type CpuTimes = { readonly idle: number; readonly total: number };

/** The first line of /proc/stat: all processors together. Waiting for a disk counts as idle; guests are in user already. */
function parseCpuTimes(stat: string): CpuTimes {
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = (
    /^cpu +(.*)$/m.exec(stat)?.[1] ?? ''
  )
    .split(/\s+/)
    .map(Number);
  return { idle: idle + iowait, total: user + nice + system + idle + iowait + irq + softirq + steal };
}

/** Between 0 and 1; 0 when nothing can be said. A file of the kernel: reading it waits for nobody. */
export function idleShareReader(read: () => string = () => readFileSync('/proc/stat', 'latin1')): () => number {
  let before: CpuTimes | undefined;
  return () => {
    const now = parseCpuTimes(read());
    const since = before;
    before = now;
    const total = since === undefined ? 0 : now.total - since.total;
    return since === undefined || total <= 0 ? 0 : (now.idle - since.idle) / total;
  };
}
