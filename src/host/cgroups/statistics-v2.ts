// cgroup v2 files as statistics. The root has no memory.current: what is used there is the sum of anonymous and file
// pages, the same as v1 shows for its root.
import { ioStat, keyedNumbers, limitOf, numberOf, pressureOf } from './kernel-formats.ts';
import { sharesOfWeight } from './cgroups.ts';
import {
  atLeastZero,
  type CgroupStatistics,
  type CpuStatistics,
  type Detail,
  type FileList,
  type FileTexts,
  type MemoryStatistics,
} from './statistics.ts';

/** One tree: every file belongs to the same "controller". */
export const UNIFIED = 'unified';

const USAGE = [
  'cpu.stat',
  'cpu.pressure',
  'memory.current',
  'memory.stat',
  'memory.max',
  'memory.swap.current',
  'memory.swap.max',
  'memory.pressure',
  'io.pressure',
];
const FULL = [
  ...USAGE,
  'cpu.weight',
  'cpu.max',
  'memory.peak',
  'memory.min',
  'memory.events.local',
  'memory.events',
  'pids.current',
  'pids.max',
  'io.stat',
];

export const filesV2 = (detail: Detail): FileList => ({ [UNIFIED]: detail === 'usage' ? USAGE : FULL });

export function statisticsV2(text: FileTexts): CgroupStatistics {
  const file = (name: string): string | undefined => text(UNIFIED, name);
  const cpu = cpuV2(file);
  const memory = memoryV2(file);
  const io = file('io.stat') === undefined ? undefined : ioStat(file('io.stat'));
  const pids = numberOf(file('pids.current'));
  const pidsMax = limitOf(file('pids.max'));
  const pressure = pressureV2(file);
  return {
    ...(cpu === undefined ? {} : { cpu }),
    ...(memory === undefined ? {} : { memory }),
    ...(io === undefined || io.length === 0 ? {} : { io }),
    ...(pids === undefined ? {} : { pids: { current: pids, ...(pidsMax === undefined ? {} : { max: pidsMax }) } }),
    ...(pressure === undefined ? {} : { pressure }),
  };
}

const USAGE_US = /^usage_usec (\d+)$/m;

/** Processor time by `cpu.stat` alone. */
export function usageNsV2(cpuStat: string | undefined): number | undefined {
  const found = USAGE_US.exec(cpuStat ?? '')?.[1];
  return found === undefined ? undefined : Number(found) * 1000;
}

type Files = (name: string) => string | undefined;

function cpuV2(file: Files): CpuStatistics | undefined {
  const stat = keyedNumbers(file('cpu.stat'));
  const usageUs = stat.get('usage_usec');
  if (usageUs === undefined) return undefined;
  const ns = (key: string): number => (stat.get(key) ?? 0) * 1000;
  const weight = numberOf(file('cpu.weight'));
  const [quota, period] = file('cpu.max')?.trim().split(/\s+/) ?? [];
  const quotaUs = limitOf(quota);
  const periodUs = numberOf(period);
  return {
    usageNs: usageUs * 1000,
    userNs: ns('user_usec'),
    systemNs: ns('system_usec'),
    ...(stat.has('nr_periods')
      ? {
          throttling: {
            periods: stat.get('nr_periods') ?? 0,
            throttledPeriods: stat.get('nr_throttled') ?? 0,
            throttledNs: ns('throttled_usec'),
            burstPeriods: stat.get('nr_bursts') ?? 0,
            burstNs: ns('burst_usec'),
          },
        }
      : {}),
    ...(weight === undefined ? {} : { shares: sharesOfWeight(weight) }),
    ...(periodUs === undefined ? {} : { periodUs }),
    ...(quotaUs === undefined ? {} : { quotaUs }),
  };
}

function memoryV2(file: Files): MemoryStatistics | undefined {
  const stat = keyedNumbers(file('memory.stat'));
  const of = (key: string): number => stat.get(key) ?? 0;
  const usageBytes = numberOf(file('memory.current')) ?? (stat.size === 0 ? undefined : of('anon') + of('file'));
  if (usageBytes === undefined) return undefined;
  const events = keyedNumbers(file('memory.events'));
  // Before 5.2 the kernel had those in the other file.
  const own = keyedNumbers(file('memory.events.local') ?? file('memory.events'));
  const limitBytes = limitOf(file('memory.max'));
  const swapLimitBytes = limitOf(file('memory.swap.max'));
  const reservationBytes = limitOf(file('memory.min'));
  return {
    usageBytes,
    maxUsageBytes: numberOf(file('memory.peak')) ?? 0,
    workingSetBytes: atLeastZero(usageBytes - of('inactive_file')),
    cacheBytes: of('file'),
    rssBytes: of('anon'),
    mappedFileBytes: of('file_mapped'),
    kernelBytes: of('kernel'),
    swapBytes: numberOf(file('memory.swap.current')) ?? 0,
    activeFileBytes: of('active_file'),
    inactiveFileBytes: of('inactive_file'),
    limitHits: events.get('max') ?? 0,
    pageFaults: of('pgfault'),
    majorPageFaults: of('pgmajfault'),
    ownPageFaults: of('pgfault'),
    ownMajorPageFaults: of('pgmajfault'),
    oomKills: events.get('oom_kill') ?? 0,
    ownOomKills: own.get('oom_kill') ?? 0,
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(swapLimitBytes === undefined ? {} : { swapLimitBytes }),
    ...(reservationBytes === undefined ? {} : { reservationBytes }),
  };
}

function pressureV2(file: Files): CgroupStatistics['pressure'] {
  const cpu = pressureOf(file('cpu.pressure'));
  const memory = pressureOf(file('memory.pressure'));
  const io = pressureOf(file('io.pressure'));
  if (cpu === undefined && memory === undefined && io === undefined) return undefined;
  return {
    ...(cpu === undefined ? {} : { cpu }),
    ...(memory === undefined ? {} : { memory }),
    ...(io === undefined ? {} : { io }),
  };
}
