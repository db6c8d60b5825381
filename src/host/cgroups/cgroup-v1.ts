// cgroup v1: the same path in every mounted hierarchy, all of them touched at the same time.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import { isThere, readNow, readValue, writeIfThere } from './cgroup-files.ts';
import { hugePageName, UNLIMITED, type CgroupReading, type Cgroups, type CgroupSettings } from './cgroups.ts';
import type { Hierarchy } from './layout.ts';
import { childDirs, killPids, pidsBelow, removeCgroup } from './remove-tree.ts';

/** A pod's cgroup counts as present when all of these that are mounted have it. */
const REQUIRED = ['cpu', 'cpuacct', 'cpuset', 'memory', 'systemd', 'pids', 'hugetlb'];

export class CgroupV1 implements Cgroups {
  readonly version = 1;
  readonly #clock: Clock;
  readonly #hierarchies: readonly Hierarchy[];
  /** Of a hybrid machine. Nothing is set there, but runtimes make directories in it that nobody else removes. */
  readonly #unified: string | undefined;

  constructor(clock: Clock, hierarchies: readonly Hierarchy[], unified?: string) {
    this.#clock = clock;
    this.#hierarchies = hierarchies;
    this.#unified = unified;
  }

  async create(path: string, settings: CgroupSettings, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await Promise.all(
      this.#hierarchies.map(async (hierarchy) => {
        const fresh = await ensureDir(hierarchy, path);
        await applySettings(hierarchy, path, fresh ? withoutDefaults(settings) : settings);
      }),
    );
  }

  async update(path: string, settings: CgroupSettings, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await Promise.all(this.#hierarchies.map((hierarchy) => applySettings(hierarchy, path, settings)));
  }

  async exists(path: string, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    const required = this.#hierarchies.filter((h) => h.controllers.some((c) => REQUIRED.includes(c)));
    return required.every((h) => isThere(join(h.mountPoint, path)));
  }

  async read(path: string, signal: AbortSignal): Promise<CgroupReading> {
    signal.throwIfAborted();
    if (!isThere(this.#dirs(path)[0] ?? '')) throw new KubeletError('notFound', `no cgroup ${path}`);
    const value = async (controller: string, file: string): Promise<string | undefined> => {
      const hierarchy = this.#hierarchies.find((h) => h.controllers.includes(controller));
      return hierarchy === undefined ? undefined : readValue(join(hierarchy.mountPoint, path, file));
    };
    const [shares, quota, period, limit, usage, pids] = await Promise.all([
      value('cpu', 'cpu.shares'),
      value('cpu', 'cpu.cfs_quota_us'),
      value('cpu', 'cpu.cfs_period_us'),
      value('memory', 'memory.limit_in_bytes'),
      value('memory', 'memory.usage_in_bytes'),
      value('pids', 'pids.max'),
    ]);
    return {
      ...(shares !== undefined && { cpuShares: Number(shares) }),
      ...(quota !== undefined && { cpuQuotaUs: Number(quota) }),
      ...(period !== undefined && { cpuPeriodUs: Number(period) }),
      ...(limit !== undefined && { memoryLimitBytes: BigInt(limit) }),
      ...(usage !== undefined && { memoryUsageBytes: BigInt(usage) }),
      ...(pids !== undefined && { pidsMax: pids === 'max' ? UNLIMITED : Number(pids) }),
    };
  }

  async children(path: string, signal: AbortSignal): Promise<readonly string[]> {
    signal.throwIfAborted();
    const all = await Promise.all(this.#allDirs(path).map((dir) => childDirs(dir)));
    return [...new Set(all.flat())];
  }

  async pids(path: string, signal: AbortSignal): Promise<readonly number[]> {
    signal.throwIfAborted();
    const all = await Promise.all(this.#dirs(path).map((dir) => pidsBelow(dir)));
    return [...new Set(all.flat())];
  }

  async destroy(path: string, signal: AbortSignal): Promise<void> {
    const kill = async (): Promise<void> => killPids(await this.pids(path, signal));
    await removeCgroup({ clock: this.#clock, dirs: this.#allDirs(path), kill }, signal);
  }

  #allDirs(path: string): string[] {
    return [...this.#dirs(path), ...(this.#unified === undefined ? [] : [join(this.#unified, path)])];
  }

  #dirs(path: string): string[] {
    return this.#hierarchies.map((h) => join(h.mountPoint, path));
  }
}

/** True when it was made just now. */
async function ensureDir(hierarchy: Hierarchy, path: string): Promise<boolean> {
  const dir = join(hierarchy.mountPoint, path);
  let fresh = true;
  try {
    await mkdir(dir);
  } catch (err) {
    if (errnoOf(err) === 'EEXIST') fresh = false;
    else if (errnoOf(err) === 'ENOENT' && dirname(path) !== path) {
      await ensureDir(hierarchy, dirname(path));
      return ensureDir(hierarchy, path);
    } else throw err;
  }
  if (hierarchy.controllers.includes('cpuset') && dir !== join(hierarchy.mountPoint, '/')) await inheritCpuset(dir);
  return fresh;
}

/** A new cpuset is empty and takes no process before it has processors and memory nodes. */
async function inheritCpuset(dir: string): Promise<void> {
  await Promise.all(
    ['cpuset.cpus', 'cpuset.mems'].map(async (file) => {
      if (readNow(join(dir, file)) !== '') return;
      const inherited = readNow(join(dirname(dir), file));
      if (inherited !== undefined && inherited !== '') await writeFile(join(dir, file), inherited);
    }),
  );
}

/** What a new v1 cgroup has anyway need not be written. */
const withoutDefaults = (settings: CgroupSettings): CgroupSettings => {
  const { cpuQuotaUs, memoryBytes, pidsMax, cpuPeriodUs, ...rest } = settings;
  return {
    ...rest,
    ...(cpuQuotaUs !== undefined && cpuQuotaUs !== UNLIMITED && { cpuQuotaUs }),
    ...(cpuPeriodUs !== undefined && cpuPeriodUs !== 100_000 && { cpuPeriodUs }),
    ...(memoryBytes !== undefined && memoryBytes !== UNLIMITED && { memoryBytes }),
    ...(pidsMax !== undefined && pidsMax !== UNLIMITED && { pidsMax }),
  };
};

async function applySettings(hierarchy: Hierarchy, path: string, s: CgroupSettings): Promise<void> {
  const write = (file: string, value: number): Promise<void> =>
    writeFile(join(hierarchy.mountPoint, path, file), String(value));
  for (const controller of hierarchy.controllers) {
    switch (controller) {
      case 'cpu':
        if (s.cpuShares !== undefined) await write('cpu.shares', s.cpuShares);
        await writeBandwidth(write, s);
        break;
      case 'memory':
        if (s.memoryBytes !== undefined) await write('memory.limit_in_bytes', s.memoryBytes);
        break;
      case 'pids':
        if (s.pidsMax !== undefined)
          await writeFile(
            join(hierarchy.mountPoint, path, 'pids.max'),
            s.pidsMax === UNLIMITED ? 'max' : String(s.pidsMax),
          );
        break;
      case 'hugetlb':
        for (const [size, limit] of s.hugePages ?? []) {
          const file = `hugetlb.${hugePageName(size)}`;
          await write(`${file}.limit_in_bytes`, limit);
          await writeIfThere(join(hierarchy.mountPoint, path, `${file}.rsvd.limit_in_bytes`), limit);
        }
        break;
      default:
    }
  }
}

/** The kernel refuses a period that makes the current quota exceed the parent's share: then the quota goes first. */
async function writeBandwidth(
  write: (file: string, value: number) => Promise<void>,
  { cpuPeriodUs, cpuQuotaUs }: CgroupSettings,
): Promise<void> {
  let periodLater = false;
  if (cpuPeriodUs !== undefined) {
    try {
      await write('cpu.cfs_period_us', cpuPeriodUs);
    } catch (err) {
      if (errnoOf(err) !== 'EINVAL' || cpuQuotaUs === undefined) throw err;
      periodLater = true;
    }
  }
  if (cpuQuotaUs !== undefined) await write('cpu.cfs_quota_us', cpuQuotaUs);
  if (periodLater && cpuPeriodUs !== undefined) await write('cpu.cfs_period_us', cpuPeriodUs);
}
