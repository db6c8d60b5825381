// The families dashboards know from cAdvisor: names, types, help texts and how each value follows from a reading. Pure.
import type { DeviceIo } from '../host/cgroups/kernel-formats.ts';
import type { CgroupStatistics } from '../host/cgroups/statistics.ts';
import type { DiskCounters, InterfaceCounters } from '../host/proc.ts';
import type { Labels } from '../lib/metrics.ts';
import type { FamilyHead, FamilyType } from './exposition.ts';
import type { FsCapacity } from './summary.ts';

export type ContainerLabels = {
  /** The cgroup's path. */
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly pod: string;
  readonly namespace: string;
  readonly container: string;
};

/** One cgroup with everything that is shown of it. */
export type ContainerReading = {
  readonly labels: ContainerLabels;
  readonly atMs: number;
  readonly startMs: number;
  readonly stats: CgroupStatistics;
  readonly processes?: {
    readonly count: number;
    readonly files: number;
    readonly sockets: number;
    readonly maxOpenFiles?: number;
  };
  readonly interfaces?: readonly InterfaceCounters[];
  /** Of the machine as a whole; of a container its writable layer, with runtimes of which cAdvisor shows that. */
  readonly filesystems?: readonly MachineFilesystem[];
};

export type MachineFilesystem = {
  readonly device: string;
  readonly capacity: FsCapacity;
  readonly disk: DiskCounters | undefined;
  /** Of a container: what it takes of it. */
  readonly usedBytes?: number;
};

type Value = { readonly value: number; readonly extra?: Labels };
export type Family = FamilyHead & {
  /** Limits and start times are facts, not measurements: no moment beside them. */
  readonly unstamped?: true;
  readonly values: (reading: ContainerReading, device: DeviceName) => readonly Value[];
};

/** The device's path by `major:minor`, empty when unknown. */
export type DeviceName = (major: number, minor: number) => string;

const one = (value: number | undefined): readonly Value[] => (value === undefined ? [] : [{ value }]);

const family =
  (type: FamilyType) =>
  (name: string, help: string, values: Family['values']): Family => ({ name: `container_${name}`, type, help, values });
const counter = family('counter');
const gauge = family('gauge');
const fact = (name: string, help: string, values: Family['values']): Family => ({
  ...gauge(name, help, values),
  unstamped: true,
});

const seconds = (ns: number): number => ns / 1e9;

const GENERAL: readonly Family[] = [
  gauge('last_seen', 'Last time a container was seen by the exporter', (r) => one(Math.floor(r.atMs / 1000))),
  // -1: no health check is known here.
  gauge('health_state', "The result of the container's health check", () => one(-1)),
  fact('start_time_seconds', 'Start time of the container since unix epoch in seconds.', (r) =>
    one(Math.floor(r.startMs / 1000)),
  ),
  // Each counts once, with the container; some runtimes put its processes into a cgroup below its own.
  counter('oom_events_total', 'Count of out of memory events observed for the container', ({ labels, stats }) =>
    one((labels.name === '' ? stats.memory?.ownOomKills : stats.memory?.oomKills) ?? 0),
  ),
];

type Throttling = NonNullable<NonNullable<CgroupStatistics['cpu']>['throttling']>;
/** Only where there is a quota to be throttled by. */
const throttled =
  (pick: (t: Throttling) => number): Family['values'] =>
  ({ stats: { cpu } }) =>
    cpu?.quotaUs === undefined || cpu.throttling === undefined ? [] : one(pick(cpu.throttling));

const CPU: readonly Family[] = [
  counter('cpu_user_seconds_total', 'Cumulative user cpu time consumed in seconds.', ({ stats: { cpu } }) =>
    one(cpu && seconds(cpu.userNs)),
  ),
  counter('cpu_system_seconds_total', 'Cumulative system cpu time consumed in seconds.', ({ stats: { cpu } }) =>
    one(cpu && seconds(cpu.systemNs)),
  ),
  counter('cpu_usage_seconds_total', 'Cumulative cpu time consumed in seconds.', ({ stats: { cpu } }) =>
    cpu === undefined ? [] : [{ value: seconds(cpu.usageNs), extra: { cpu: 'total' } }],
  ),
  counter(
    'cpu_cfs_periods_total',
    'Number of elapsed enforcement period intervals.',
    throttled((t) => t.periods),
  ),
  counter(
    'cpu_cfs_throttled_periods_total',
    'Number of throttled period intervals.',
    throttled((t) => t.throttledPeriods),
  ),
  counter(
    'cpu_cfs_throttled_seconds_total',
    'Total time duration the container has been throttled.',
    throttled((t) => seconds(t.throttledNs)),
  ),
  counter(
    'cpu_cfs_burst_periods_total',
    'Number of periods when burst occurs.',
    throttled((t) => t.burstPeriods),
  ),
  counter(
    'cpu_cfs_burst_seconds_total',
    'Total time duration the container has been bursted.',
    throttled((t) => seconds(t.burstNs)),
  ),
  // Nobody on a kubelet reads loads of tasks: the families are there, as everywhere, and say zero.
  gauge('cpu_load_average_10s', 'Value of container cpu load average over the last 10 seconds.', () => one(0)),
  gauge('cpu_load_d_average_10s', 'Value of container cpu load.d average over the last 10 seconds.', () => one(0)),
  gauge('tasks_state', 'Number of tasks in given state', () =>
    ['sleeping', 'running', 'stopped', 'uninterruptible', 'iowaiting'].map((state) => ({ value: 0, extra: { state } })),
  ),
  fact('spec_cpu_period', 'CPU period of the container.', ({ stats: { cpu } }) => one(cpu && (cpu.periodUs ?? 0))),
  fact('spec_cpu_quota', 'CPU quota of the container.', ({ stats: { cpu } }) => one(cpu?.quotaUs)),
  fact('spec_cpu_shares', 'CPU share of the container.', ({ stats: { cpu } }) => one(cpu && (cpu.shares ?? 0))),
];

type Memory = NonNullable<CgroupStatistics['memory']>;
const ofMemory =
  (pick: (memory: Memory) => number): Family['values'] =>
  ({ stats: { memory } }) =>
    one(memory && pick(memory));

const MEMORY: readonly Family[] = [
  gauge(
    'memory_cache',
    'Number of bytes of page cache memory.',
    ofMemory((m) => m.cacheBytes),
  ),
  gauge(
    'memory_rss',
    'Size of RSS in bytes.',
    ofMemory((m) => m.rssBytes),
  ),
  gauge(
    'memory_kernel_usage',
    'Size of kernel memory allocated in bytes.',
    ofMemory((m) => m.kernelBytes),
  ),
  gauge(
    'memory_mapped_file',
    'Size of memory mapped files in bytes.',
    ofMemory((m) => m.mappedFileBytes),
  ),
  gauge(
    'memory_swap',
    'Container swap usage in bytes.',
    ofMemory((m) => m.swapBytes),
  ),
  counter(
    'memory_failcnt',
    'Number of memory usage hits limits',
    ofMemory((m) => m.limitHits),
  ),
  gauge(
    'memory_usage_bytes',
    'Current memory usage in bytes, including all memory regardless of when it was accessed',
    ofMemory((m) => m.usageBytes),
  ),
  gauge(
    'memory_max_usage_bytes',
    'Maximum memory usage recorded in bytes',
    ofMemory((m) => m.maxUsageBytes),
  ),
  gauge(
    'memory_working_set_bytes',
    'Current working set in bytes.',
    ofMemory((m) => m.workingSetBytes),
  ),
  gauge(
    'memory_total_active_file_bytes',
    'Current total active file in bytes.',
    ofMemory((m) => m.activeFileBytes),
  ),
  gauge(
    'memory_total_inactive_file_bytes',
    'Current total inactive file in bytes.',
    ofMemory((m) => m.inactiveFileBytes),
  ),
  counter('memory_failures_total', 'Cumulative count of memory allocation failures.', ({ stats: { memory } }) =>
    memory === undefined
      ? []
      : (
          [
            ['pgfault', 'container', memory.ownPageFaults],
            ['pgmajfault', 'container', memory.ownMajorPageFaults],
            ['pgfault', 'hierarchy', memory.pageFaults],
            ['pgmajfault', 'hierarchy', memory.majorPageFaults],
          ] as const
        ).map(([failure_type, scope, value]) => ({ value, extra: { failure_type, scope } })),
  ),
  // No limit is shown as zero.
  fact(
    'spec_memory_limit_bytes',
    'Memory limit for the container.',
    ofMemory((m) => m.limitBytes ?? 0),
  ),
  fact(
    'spec_memory_swap_limit_bytes',
    'Memory swap limit for the container.',
    ofMemory((m) => m.swapLimitBytes ?? 0),
  ),
  fact(
    'spec_memory_reservation_limit_bytes',
    'Memory reservation limit for the container.',
    ofMemory((m) => m.reservationBytes ?? 0),
  ),
];

const perFilesystem =
  (pick: (fs: MachineFilesystem) => number): Family['values'] =>
  ({ filesystems }) =>
    (filesystems ?? []).map((fs) => ({ value: pick(fs), extra: { device: fs.device } }));

const disk = (pick: (counters: DiskCounters) => number): Family['values'] =>
  perFilesystem((fs) => (fs.disk === undefined ? 0 : pick(fs.disk)));

const perDevice =
  (pick: (io: DeviceIo) => number | undefined): Family['values'] =>
  ({ stats }, name) =>
    (stats.io ?? []).flatMap((io) => {
      const value = pick(io);
      return value === undefined ? [] : [{ value, extra: { device: name(io.major, io.minor) } }];
    });

/** As the cgroup counts them; of the machine also each filesystem, as its disk does. */
const requests = (operation: string, pick: (counters: DiskCounters) => number): Family['values'] => {
  const [ofCgroup, ofDisks] = [perDevice((io) => io.requests.get(operation)), disk(pick)];
  return (reading, name) => {
    const counted = ofCgroup(reading, name);
    const named = new Set(counted.map(({ extra }) => extra?.['device']));
    return [...counted, ...ofDisks(reading, name).filter(({ extra }) => !named.has(extra?.['device']))];
  };
};

const cost = (key: string): Family['values'] =>
  perDevice((io) => {
    const us = io.costUs?.get(key);
    return us === undefined ? undefined : us / 1e6;
  });

const DISK: readonly Family[] = [
  gauge(
    'fs_inodes_free',
    'Number of available Inodes',
    perFilesystem((fs) => fs.capacity.inodesFree),
  ),
  gauge(
    'fs_inodes_total',
    'Number of Inodes',
    perFilesystem((fs) => fs.capacity.inodes),
  ),
  gauge(
    'fs_limit_bytes',
    'Number of bytes that can be consumed by the container on this filesystem.',
    perFilesystem((fs) => fs.capacity.capacityBytes),
  ),
  gauge(
    'fs_usage_bytes',
    'Number of bytes that are consumed by the container on this filesystem.',
    perFilesystem((fs) => fs.usedBytes ?? fs.capacity.capacityBytes - fs.capacity.freeBytes),
  ),
  counter(
    'fs_reads_bytes_total',
    'Cumulative count of bytes read',
    perDevice((io) => io.bytes.get('Read')),
  ),
  counter(
    'fs_reads_total',
    'Cumulative count of reads completed',
    requests('Read', (d) => d.reads),
  ),
  counter(
    'fs_sector_reads_total',
    'Cumulative count of sector reads completed',
    disk((d) => d.sectorsRead),
  ),
  counter(
    'fs_reads_merged_total',
    'Cumulative count of reads merged',
    disk((d) => d.readsMerged),
  ),
  counter(
    'fs_read_seconds_total',
    'Cumulative count of seconds spent reading',
    disk((d) => d.readMs / 1000),
  ),
  counter(
    'fs_writes_bytes_total',
    'Cumulative count of bytes written',
    perDevice((io) => io.bytes.get('Write')),
  ),
  counter(
    'fs_writes_total',
    'Cumulative count of writes completed',
    requests('Write', (d) => d.writes),
  ),
  counter(
    'fs_sector_writes_total',
    'Cumulative count of sector writes completed',
    disk((d) => d.sectorsWritten),
  ),
  counter(
    'fs_writes_merged_total',
    'Cumulative count of writes merged',
    disk((d) => d.writesMerged),
  ),
  counter(
    'fs_write_seconds_total',
    'Cumulative count of seconds spent writing',
    disk((d) => d.writeMs / 1000),
  ),
  gauge(
    'fs_io_current',
    'Number of I/Os currently in progress',
    disk((d) => d.ioInProgress),
  ),
  counter(
    'fs_io_time_seconds_total',
    'Cumulative count of seconds spent doing I/Os',
    disk((d) => d.ioMs / 1000),
  ),
  counter(
    'fs_io_time_weighted_seconds_total',
    'Cumulative weighted I/O time in seconds',
    disk((d) => d.weightedIoMs / 1000),
  ),
  counter('fs_io_cost_usage_seconds_total', 'Cumulative IOCost usage in seconds', cost('usage')),
  counter('fs_io_cost_wait_seconds_total', 'Cumulative IOCost wait in seconds', cost('wait')),
  counter('fs_io_cost_indebt_seconds_total', 'Cumulative IOCost debt in seconds', cost('indebt')),
  counter('fs_io_cost_indelay_seconds_total', 'Cumulative IOCost delay in seconds', cost('indelay')),
  counter('blkio_device_usage_total', 'Blkio Device bytes usage', ({ stats }, name) =>
    (stats.io ?? []).flatMap(({ major, minor, bytes }) =>
      [...bytes].map(([operation, value]) => ({
        value,
        extra: { device: name(major, minor), major: String(major), minor: String(minor), operation },
      })),
    ),
  ),
];

const perInterface =
  (pick: (counters: InterfaceCounters) => number): Family['values'] =>
  ({ interfaces }) =>
    (interfaces ?? []).map((counters) => ({ value: pick(counters), extra: { interface: counters.name } }));

const DIRECTIONS: readonly (readonly [string, string, string, 'rx' | 'tx'])[] = [
  ['receive', 'received', 'receiving', 'rx'],
  ['transmit', 'transmitted', 'transmitting', 'tx'],
];

const NETWORK: readonly Family[] = DIRECTIONS.flatMap(([direction, done, doing, key]) => [
  counter(
    `network_${direction}_bytes_total`,
    `Cumulative count of bytes ${done}`,
    perInterface((c) => c[`${key}Bytes`]),
  ),
  counter(
    `network_${direction}_packets_total`,
    `Cumulative count of packets ${done}`,
    perInterface((c) => c[`${key}Packets`]),
  ),
  counter(
    `network_${direction}_packets_dropped_total`,
    `Cumulative count of packets dropped while ${doing}`,
    perInterface((c) => c[`${key}Dropped`]),
  ),
  counter(
    `network_${direction}_errors_total`,
    `Cumulative count of errors encountered while ${doing}`,
    perInterface((c) => c[`${key}Errors`]),
  ),
]);

const PROCESSES: readonly Family[] = [
  gauge('processes', 'Number of processes running inside the container.', (r) => one(r.processes?.count)),
  gauge('file_descriptors', 'Number of open file descriptors for the container.', (r) => one(r.processes?.files)),
  gauge('sockets', 'Number of open sockets for the container.', (r) => one(r.processes?.sockets)),
  gauge('threads_max', 'Maximum number of threads allowed inside the container, infinity if value is zero', (r) =>
    one(r.processes && (r.stats.pids?.max ?? 0)),
  ),
  gauge('threads', 'Number of threads running inside the container', (r) =>
    one(r.processes && (r.stats.pids?.current ?? 0)),
  ),
  gauge(
    'ulimits_soft',
    'Soft ulimit values for the container root process. Unlimited if -1, except priority and nice',
    ({ processes }) =>
      processes?.maxOpenFiles === undefined
        ? []
        : [{ value: processes.maxOpenFiles, extra: { ulimit: 'max_open_files' } }],
  ),
];

const RESOURCES = [
  ['cpu', 'CPU'],
  ['memory', 'memory'],
  ['io', 'IO'],
] as const;

const PRESSURE: readonly Family[] = RESOURCES.flatMap(([resource, label]) => [
  counter(
    `pressure_${resource}_stalled_seconds_total`,
    `Total time duration no tasks in the container could make progress due to ${label} congestion.`,
    ({ stats }) => one(stats.pressure?.[resource] && stats.pressure[resource].full.totalUs / 1e6),
  ),
  counter(
    `pressure_${resource}_waiting_seconds_total`,
    `Total time duration tasks in the container have waited due to ${label} congestion.`,
    ({ stats }) => one(stats.pressure?.[resource] && stats.pressure[resource].some.totalUs / 1e6),
  ),
]);

export const CONTAINER_FAMILIES: readonly Family[] = [
  ...GENERAL,
  ...CPU,
  ...MEMORY,
  ...DISK,
  ...NETWORK,
  ...PROCESSES,
  ...PRESSURE,
];
