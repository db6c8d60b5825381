// cgroup v2: one tree. A parent hands its controllers down through cgroup.subtree_control before a child is made.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import { isThere, readValue, writeIfThere } from './cgroup-files.ts';
import {
  hugePageName,
  sharesOfWeight,
  UNLIMITED,
  weightOfShares,
  type CgroupReading,
  type Cgroups,
  type CgroupSettings,
} from './cgroups.ts';
import { childDirs, isGone, killPids, pidsBelow, removeCgroup } from './remove-tree.ts';

/** A pod's cgroup counts as present when it has all of these that the root has. */
const REQUIRED = ['cpu', 'cpuset', 'memory', 'hugetlb', 'pids'];
const CONTROLLERS = 'cgroup.controllers';
const DEFAULT_PERIOD_US = 100_000;
/** The root's controllers are the kernel's: they are read again after this long, and before a cgroup counts as missing. */
const KEPT_MS = 60_000;

export class CgroupV2 implements Cgroups {
  readonly version = 2;
  readonly #clock: Clock;
  readonly #mountPoint: string;
  /** Of the root; `complete` is what a cgroup had last that had all of them. */
  #controllers: { readonly names: readonly string[]; readonly at: number; complete: string | undefined } | undefined;

  constructor(clock: Clock, mountPoint: string) {
    this.#clock = clock;
    this.#mountPoint = mountPoint;
  }

  async create(path: string, settings: CgroupSettings, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const available = await controllersOf(this.#mountPoint);
    await this.#ensure(path, available);
    await this.update(path, settings, signal);
  }

  async update(path: string, s: CgroupSettings, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const dir = this.#dir(path);
    const writes: [string, string][] = Object.entries(s.unified ?? {});
    if (s.cpuShares !== undefined) writes.push(['cpu.weight', String(weightOfShares(s.cpuShares))]);
    if (s.cpuQuotaUs !== undefined)
      writes.push(['cpu.max', `${limitText(s.cpuQuotaUs)} ${s.cpuPeriodUs ?? DEFAULT_PERIOD_US}`]);
    if (s.memoryBytes !== undefined) writes.push(['memory.max', limitText(s.memoryBytes)]);
    if (s.pidsMax !== undefined) writes.push(['pids.max', limitText(s.pidsMax)]);
    await Promise.all([
      ...writes.map(([file, value]) => writeFile(join(dir, file), value)),
      this.#limitHugePages(dir, s.hugePages),
    ]);
  }

  /** Also those that are only reserved: without, a program that asks for too many dies when it touches them. */
  async #limitHugePages(dir: string, limits: CgroupSettings['hugePages'] = new Map()): Promise<void> {
    if (limits.size === 0 || !(await controllersOf(dir)).includes('hugetlb')) return;
    for (const [size, limit] of limits) {
      const file = join(dir, `hugetlb.${hugePageName(size)}`);
      await writeFile(`${file}.max`, limitText(limit));
      await writeIfThere(`${file}.rsvd.max`, limitText(limit));
    }
  }

  async exists(path: string, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    const text = await readFile(`${this.#dir(path)}/${CONTROLLERS}`, 'utf8').catch((err: unknown) => {
      if (isGone(err)) return undefined;
      throw err;
    });
    if (text === undefined) return false;
    const known = this.#controllers;
    const isKnown = known !== undefined && this.#clock.monotonic() - known.at < KEPT_MS;
    // Nearly all pods have the same ones.
    if (isKnown && text === known.complete) return true;
    const own = wordsOf(text);
    const hasAll = (root: readonly string[]): boolean => root.every((c) => !REQUIRED.includes(c) || own.includes(c));
    if (isKnown && hasAll(known.names)) {
      known.complete = text;
      return true;
    }
    const names = await controllersOf(this.#mountPoint);
    const isComplete = hasAll(names);
    this.#controllers = { names, at: this.#clock.monotonic(), complete: isComplete ? text : undefined };
    return isComplete;
  }

  async read(path: string, signal: AbortSignal): Promise<CgroupReading> {
    signal.throwIfAborted();
    const dir = this.#dir(path);
    if (!isThere(dir)) throw new KubeletError('notFound', `no cgroup ${path}`);
    const [weight, max, limit, usage, pids] = await Promise.all(
      ['cpu.weight', 'cpu.max', 'memory.max', 'memory.current', 'pids.max'].map((f) => readValue(join(dir, f))),
    );
    const [quota, period] = max?.split(' ') ?? [];
    return {
      ...(weight !== undefined && { cpuShares: sharesOfWeight(Number(weight)) }),
      ...(quota !== undefined && { cpuQuotaUs: limitOf(quota) }),
      ...(period !== undefined && { cpuPeriodUs: Number(period) }),
      ...(limit !== undefined && { memoryLimitBytes: limit === 'max' ? -1n : BigInt(limit) }),
      ...(usage !== undefined && { memoryUsageBytes: BigInt(usage) }),
      ...(pids !== undefined && { pidsMax: limitOf(pids) }),
    };
  }

  async children(path: string, signal: AbortSignal): Promise<readonly string[]> {
    signal.throwIfAborted();
    return childDirs(this.#dir(path));
  }

  async pids(path: string, signal: AbortSignal): Promise<readonly number[]> {
    signal.throwIfAborted();
    return pidsBelow(this.#dir(path));
  }

  async destroy(path: string, signal: AbortSignal): Promise<void> {
    const kill = async (): Promise<void> => {
      try {
        await writeFile(join(this.#dir(path), 'cgroup.kill'), '1');
      } catch (err) {
        // Kernels before 5.14 have no such file; a cgroup that is gone needs no kill.
        if (!isGone(err) && errnoOf(err) !== 'EACCES') throw err;
        killPids(await this.pids(path, signal));
      }
    };
    await removeCgroup({ clock: this.#clock, dirs: [this.#dir(path)], kill }, signal);
  }

  /** Makes the cgroup and, before it, its parents; every parent passes on all controllers it may. */
  async #ensure(path: string, available: readonly string[]): Promise<void> {
    const parent = dirname(path);
    if (parent !== path) {
      await this.#ensure(parent, available);
      await this.#delegate(this.#dir(parent), available);
    }
    try {
      await mkdir(this.#dir(path));
    } catch (err) {
      if (errnoOf(err) !== 'EEXIST') throw err;
    }
  }

  async #delegate(dir: string, available: readonly string[]): Promise<void> {
    const enabled = wordsOf(await readFile(join(dir, 'cgroup.subtree_control'), 'utf8'));
    const missing = available.filter((c) => !enabled.includes(c));
    if (missing.length === 0) return;
    const file = join(dir, 'cgroup.subtree_control');
    try {
      await writeFile(file, missing.map((c) => `+${c}`).join(' '));
    } catch {
      // One controller that cannot be passed on must not withhold the others; `exists` tells whether it mattered.
      for (const controller of missing) await writeFile(file, `+${controller}`).catch(() => undefined);
    }
  }

  #dir(path: string): string {
    return join(this.#mountPoint, path);
  }
}

const limitText = (value: number): string => (value === UNLIMITED ? 'max' : String(value));
const limitOf = (text: string): number => (text === 'max' ? UNLIMITED : Number(text));

const wordsOf = (text: string): string[] => text.trim().split(/\s+/).filter(Boolean);
const controllersOf = async (dir: string): Promise<string[]> =>
  wordsOf(await readFile(`${dir}/${CONTROLLERS}`, 'utf8'));
