// One cgroup as the rest of the kubelet sees it, the same for v1, v2 and systemd.

export const UNLIMITED = -1;

/** Absent fields are left alone. `-1` removes a limit. */
export type CgroupSettings = {
  readonly cpuShares?: number;
  readonly cpuQuotaUs?: number;
  readonly cpuPeriodUs?: number;
  readonly memoryBytes?: number;
  readonly pidsMax?: number;
  /** Limit in bytes by page size in bytes. */
  readonly hugePages?: ReadonlyMap<number, number>;
  /** Further cgroup v2 files, written as they are. */
  readonly unified?: Readonly<Record<string, string>>;
};

export type CgroupReading = {
  readonly cpuShares?: number;
  /** -1: no quota. */
  readonly cpuQuotaUs?: number;
  readonly cpuPeriodUs?: number;
  /** As the kernel prints it: v1 shows a huge number for "no limit", v2 has none (-1). */
  readonly memoryLimitBytes?: bigint;
  readonly memoryUsageBytes?: bigint;
  /** -1: no limit. */
  readonly pidsMax?: number;
};

export interface Cgroups {
  readonly version: 1 | 2;
  /** Makes the cgroup and its parents where missing, then applies the settings. Repeating it is harmless. */
  create(path: string, settings: CgroupSettings, signal: AbortSignal): Promise<void>;
  update(path: string, settings: CgroupSettings, signal: AbortSignal): Promise<void>;
  /** Whether it exists everywhere it has to. */
  exists(path: string, signal: AbortSignal): Promise<boolean>;
  /** Rejects with `notFound` when the cgroup is gone. */
  read(path: string, signal: AbortSignal): Promise<CgroupReading>;
  /** Names of the cgroups directly below, from every hierarchy; empty when there is no such cgroup. */
  children(path: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Processes in the cgroup and below. */
  pids(path: string, signal: AbortSignal): Promise<readonly number[]>;
  /** Kills what still runs in it and removes it with everything below. Gone already is fine. */
  destroy(path: string, signal: AbortSignal): Promise<void>;
}

const SHARES_MIN = 2;
const SHARES_MAX = 262_144;

/** cgroup v2's cpu.weight (1–10000) for v1's cpu.shares (2–262144), on a straight line. */
export const weightOfShares = (shares: number): number => {
  const clamped = Math.min(Math.max(shares, SHARES_MIN), SHARES_MAX);
  return 1 + Math.floor(((clamped - 2) * 9999) / 262_142);
};

export const sharesOfWeight = (weight: number): number => Math.floor(((weight - 1) * 262_142) / 9999) + 2;

/** The kernel's name of a huge page size: `64KB`, `2MB`, `1GB`. */
export function hugePageName(sizeBytes: number): string {
  if (sizeBytes >= 2 ** 30) return `${sizeBytes / 2 ** 30}GB`;
  return sizeBytes >= 2 ** 20 ? `${sizeBytes / 2 ** 20}MB` : `${sizeBytes / 2 ** 10}KB`;
}
