// cgroup v1 files as statistics. Sums over the whole subtree where the kernel has them (`total_…`), as v2 always does.
import { blkio, keyedNumbers, limitOf, numberOf } from './kernel-formats.ts';
import {
  atLeastZero,
  type CgroupStatistics,
  type CpuStatistics,
  type Detail,
  type FileList,
  type FileTexts,
  type MemoryStatistics,
} from './statistics.ts';

const USAGE: FileList = {
  cpuacct: ['cpuacct.usage'],
  memory: ['memory.usage_in_bytes', 'memory.stat', 'memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'],
};

/** Which of them counts depends on the scheduler of the disks. */
const BLKIO = ['blkio.bfq', 'blkio.throttle'].map((kind) => ({
  bytes: `${kind}.io_service_bytes_recursive`,
  requests: `${kind}.io_serviced_recursive`,
}));

const FULL: FileList = {
  cpuacct: ['cpuacct.usage', 'cpuacct.stat'],
  cpu: ['cpu.stat', 'cpu.shares', 'cpu.cfs_period_us', 'cpu.cfs_quota_us'],
  memory: [
    ...(USAGE['memory'] ?? []),
    'memory.max_usage_in_bytes',
    'memory.soft_limit_in_bytes',
    'memory.kmem.usage_in_bytes',
    'memory.failcnt',
    'memory.oom_control',
  ],
  pids: ['pids.current', 'pids.max'],
  blkio: BLKIO.flatMap(({ bytes, requests }) => [bytes, requests]),
};

export const filesV1 = (detail: Detail): FileList => (detail === 'usage' ? USAGE : FULL);

/** Ticks of the clock that cpuacct.stat counts in, per second. */
const USER_HZ = 100;
const NS_PER_TICK = 1e9 / USER_HZ;

export function statisticsV1(text: FileTexts): CgroupStatistics {
  const cpu = cpuV1(text);
  const memory = memoryV1(text);
  const pids = numberOf(text('pids', 'pids.current'));
  const pidsMax = limitOf(text('pids', 'pids.max'));
  const io = BLKIO.map(({ bytes, requests }) => blkio(text('blkio', bytes), text('blkio', requests))).find(
    (devices) => devices.length > 0,
  );
  return {
    ...(cpu === undefined ? {} : { cpu }),
    ...(memory === undefined ? {} : { memory }),
    ...(io === undefined ? {} : { io }),
    ...(pids === undefined ? {} : { pids: { current: pids, ...(pidsMax === undefined ? {} : { max: pidsMax }) } }),
  };
}

function cpuV1(text: FileTexts): CpuStatistics | undefined {
  const usageNs = numberOf(text('cpuacct', 'cpuacct.usage'));
  if (usageNs === undefined) return undefined;
  const split = keyedNumbers(text('cpuacct', 'cpuacct.stat'));
  const bandwidth = keyedNumbers(text('cpu', 'cpu.stat'));
  const shares = numberOf(text('cpu', 'cpu.shares'));
  const periodUs = numberOf(text('cpu', 'cpu.cfs_period_us'));
  const quotaUs = limitOf(text('cpu', 'cpu.cfs_quota_us'));
  return {
    usageNs,
    userNs: (split.get('user') ?? 0) * NS_PER_TICK,
    systemNs: (split.get('system') ?? 0) * NS_PER_TICK,
    ...(bandwidth.size === 0
      ? {}
      : {
          throttling: {
            periods: bandwidth.get('nr_periods') ?? 0,
            throttledPeriods: bandwidth.get('nr_throttled') ?? 0,
            throttledNs: bandwidth.get('throttled_time') ?? 0,
            burstPeriods: bandwidth.get('nr_bursts') ?? 0,
            burstNs: bandwidth.get('burst_time') ?? 0,
          },
        }),
    ...(shares === undefined ? {} : { shares }),
    ...(periodUs === undefined ? {} : { periodUs }),
    ...(quotaUs === undefined ? {} : { quotaUs }),
  };
}

function memoryV1(text: FileTexts): MemoryStatistics | undefined {
  const usageBytes = numberOf(text('memory', 'memory.usage_in_bytes'));
  if (usageBytes === undefined) return undefined;
  const stat = keyedNumbers(text('memory', 'memory.stat'));
  const total = (key: string): number => stat.get(`total_${key}`) ?? stat.get(key) ?? 0;
  const limitBytes = limitOf(text('memory', 'memory.limit_in_bytes'));
  const swapLimitBytes = limitOf(text('memory', 'memory.memsw.limit_in_bytes'));
  const reservationBytes = limitOf(text('memory', 'memory.soft_limit_in_bytes'));
  const kills = keyedNumbers(text('memory', 'memory.oom_control')).get('oom_kill') ?? 0;
  return {
    usageBytes,
    maxUsageBytes: numberOf(text('memory', 'memory.max_usage_in_bytes')) ?? 0,
    workingSetBytes: atLeastZero(usageBytes - total('inactive_file')),
    cacheBytes: total('cache'),
    rssBytes: total('rss'),
    mappedFileBytes: total('mapped_file'),
    kernelBytes: numberOf(text('memory', 'memory.kmem.usage_in_bytes')) ?? 0,
    swapBytes: total('swap'),
    activeFileBytes: total('active_file'),
    inactiveFileBytes: total('inactive_file'),
    limitHits: numberOf(text('memory', 'memory.failcnt')) ?? 0,
    pageFaults: total('pgfault'),
    majorPageFaults: total('pgmajfault'),
    ownPageFaults: stat.get('pgfault') ?? 0,
    ownMajorPageFaults: stat.get('pgmajfault') ?? 0,
    oomKills: kills,
    ownOomKills: kills,
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(swapLimitBytes === undefined ? {} : { swapLimitBytes }),
    ...(reservationBytes === undefined ? {} : { reservationBytes }),
  };
}
