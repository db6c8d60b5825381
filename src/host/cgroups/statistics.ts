// What a cgroup used, the same for v1 and v2. Parsing is pure: a reader hands over the texts of the files it could read.
import type { DeviceIo, Pressure } from './kernel-formats.ts';

export type CpuStatistics = {
  readonly usageNs: number;
  readonly userNs: number;
  readonly systemNs: number;
  /** Bandwidth control; absent where the file is. */
  readonly throttling?: {
    readonly periods: number;
    readonly throttledPeriods: number;
    readonly throttledNs: number;
    readonly burstPeriods: number;
    readonly burstNs: number;
  };
  readonly shares?: number;
  readonly periodUs?: number;
  /** Absent: no quota. */
  readonly quotaUs?: number;
};

export type MemoryStatistics = {
  readonly usageBytes: number;
  readonly maxUsageBytes: number;
  /** Usage without the file pages that nothing touched lately. */
  readonly workingSetBytes: number;
  readonly cacheBytes: number;
  readonly rssBytes: number;
  readonly mappedFileBytes: number;
  readonly kernelBytes: number;
  readonly swapBytes: number;
  readonly activeFileBytes: number;
  readonly inactiveFileBytes: number;
  /** How often the limit was hit. */
  readonly limitHits: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
  /** Of the processes right in this cgroup; v2 does not tell them from those below. */
  readonly ownPageFaults: number;
  readonly ownMajorPageFaults: number;
  /** Here and, on v2, below. */
  readonly oomKills: number;
  /** Of the processes right in this cgroup. */
  readonly ownOomKills: number;
  /** Absent: no limit. */
  readonly limitBytes?: number;
  /** As the kernel counts it: v1 limits memory and swap together, v2 swap alone. Absent: no limit. */
  readonly swapLimitBytes?: number;
  readonly reservationBytes?: number;
};

export type CgroupStatistics = {
  readonly cpu?: CpuStatistics;
  readonly memory?: MemoryStatistics;
  readonly io?: readonly DeviceIo[];
  /** `max` absent: no limit. */
  readonly pids?: { readonly current: number; readonly max?: number };
  /** Absent where the kernel keeps none for a cgroup. */
  readonly pressure?: { readonly cpu?: Pressure; readonly memory?: Pressure; readonly io?: Pressure };
};

/** `usage`: what the summary needs. `full`: everything, for the container metrics. */
export type Detail = 'usage' | 'full';

/** The text of one file of a controller, undefined when there is none. */
export type FileTexts = (controller: string, file: string) => string | undefined;

/** Which files to read for a detail. */
export type FileList = Readonly<Record<string, readonly string[]>>;

/** Counters never go below zero, whatever order the files were read in. */
export const atLeastZero = (value: number): number => Math.max(0, value);
