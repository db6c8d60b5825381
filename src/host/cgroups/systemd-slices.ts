// The systemd driver: slices are asked of systemd so that it accepts them as its own; what systemd cannot express is
// written to the files afterwards by the cgroup access below it.
import { basename } from 'node:path';
import { Variant } from '../../lib/dbus/values.ts';
import { isFault } from '../../lib/errors.ts';
import type { UnitProperty } from '../systemd/unit-manager.ts';
import { UNLIMITED, weightOfShares, type CgroupReading, type Cgroups, type CgroupSettings } from './cgroups.ts';

/** systemd's manager; each call resolves when its job is done. */
export interface Units {
  /** Undefined where systemd does not tell. */
  version(signal: AbortSignal): Promise<number | undefined>;
  /** Rejects with `exists` when systemd knows the unit already. */
  startTransient(unit: string, properties: readonly UnitProperty[], signal: AbortSignal): Promise<void>;
  start(unit: string, signal: AbortSignal): Promise<void>;
  setProperties(unit: string, properties: readonly UnitProperty[], signal: AbortSignal): Promise<void>;
  /** Rejects with `notFound` for a unit systemd does not know. */
  stop(unit: string, signal: AbortSignal): Promise<void>;
}

export type SystemdDeps = { readonly files: Cgroups; readonly units: Units };

/** The first version that knows of periods other than its own. */
const KNOWS_PERIODS = 242;

export class SystemdSlices implements Cgroups {
  readonly #deps: SystemdDeps;
  #version: number | undefined;

  constructor(deps: SystemdDeps) {
    this.#deps = deps;
  }

  get version(): 1 | 2 {
    return this.#deps.files.version;
  }

  async create(path: string, asked: CgroupSettings, signal: AbortSignal): Promise<void> {
    const settings = inWholePercents(asked);
    if (await this.#isThere(path, signal)) await this.#setProperties(path, settings, signal);
    else await this.#start(path, settings, signal);
    await this.#deps.files.create(path, settings, signal);
  }

  async update(path: string, asked: CgroupSettings, signal: AbortSignal): Promise<void> {
    const settings = inWholePercents(asked);
    await this.#setProperties(path, settings, signal);
    await this.#deps.files.update(path, settings, signal);
  }

  async destroy(path: string, signal: AbortSignal): Promise<void> {
    await this.#deps.units.stop(unitOf(path), signal).catch((err: unknown) => {
      if (!isFault(err, 'notFound')) throw err;
    });
    await this.#deps.files.destroy(path, signal);
  }

  /** systemd takes controllers away that no unit of its own needs: they are given back before the slice counts as lost. */
  async exists(path: string, signal: AbortSignal): Promise<boolean> {
    const { files } = this.#deps;
    if (await files.exists(path, signal)) return true;
    if (!(await this.#isThere(path, signal))) return false;
    await files.create(path, {}, signal);
    return files.exists(path, signal);
  }

  read(path: string, signal: AbortSignal): Promise<CgroupReading> {
    return this.#deps.files.read(path, signal);
  }

  children(path: string, signal: AbortSignal): Promise<readonly string[]> {
    return this.#deps.files.children(path, signal);
  }

  pids(path: string, signal: AbortSignal): Promise<readonly number[]> {
    return this.#deps.files.pids(path, signal);
  }

  async #start(path: string, settings: CgroupSettings, signal: AbortSignal): Promise<void> {
    const { units } = this.#deps;
    const unit = unitOf(path);
    const accounting = ['CPUAccounting', 'MemoryAccounting', 'TasksAccounting', 'IOAccounting'] as const;
    const properties: UnitProperty[] = [
      ['Description', new Variant('s', `kubernetes slice ${unit}`)],
      ['DefaultDependencies', new Variant('b', false)],
      ...accounting.map((name): UnitProperty => [name, new Variant('b', true)]),
      ...(await this.#propertiesOf(settings, signal)),
    ];
    await units.startTransient(unit, properties, signal).catch(async (err: unknown) => {
      // Known to systemd from before, without its cgroup: start it again as it is.
      if (!isFault(err, 'exists')) throw err;
      await units.start(unit, signal);
      await this.#setProperties(path, settings, signal);
    });
  }

  async #setProperties(path: string, settings: CgroupSettings, signal: AbortSignal): Promise<void> {
    const properties = await this.#propertiesOf(settings, signal);
    if (properties.length > 0) await this.#deps.units.setProperties(unitOf(path), properties, signal);
  }

  async #propertiesOf(s: CgroupSettings, signal: AbortSignal): Promise<UnitProperty[]> {
    const v2 = this.version === 2;
    const properties: UnitProperty[] = [];
    const add = (name: string, value: bigint): unknown => properties.push([name, new Variant('t', value)]);
    if (s.cpuShares !== undefined)
      if (v2) add('CPUWeight', BigInt(weightOfShares(s.cpuShares)));
      else add('CPUShares', BigInt(s.cpuShares));
    if (s.cpuQuotaUs !== undefined) {
      const periodUs = s.cpuPeriodUs ?? DEFAULT_PERIOD_US;
      if (await this.#knowsPeriods(signal)) add('CPUQuotaPeriodUSec', BigInt(periodUs));
      add('CPUQuotaPerSecUSec', s.cpuQuotaUs === UNLIMITED ? INFINITY : BigInt(perSecond(s.cpuQuotaUs, periodUs)));
    }
    if (s.memoryBytes !== undefined) add(v2 ? 'MemoryMax' : 'MemoryLimit', infinite(s.memoryBytes));
    if (s.pidsMax !== undefined) add('TasksMax', infinite(s.pidsMax));
    for (const [file, property] of UNIFIED) {
      const value = s.unified?.[file];
      if (v2 && value !== undefined) add(property, BigInt(value));
    }
    return properties;
  }

  /** An older one refuses a property that it does not know; the files have the period all the same. */
  async #knowsPeriods(signal: AbortSignal): Promise<boolean> {
    this.#version ??= await this.#deps.units.version(signal).catch(() => {
      signal.throwIfAborted();
      return undefined; // what else is asked of it will tell what is wrong
    });
    return (this.#version ?? 0) >= KNOWS_PERIODS;
  }

  async #isThere(path: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#deps.files.read(path, signal);
      return true;
    } catch (err) {
      if (isFault(err, 'notFound')) return false;
      throw err;
    }
  }
}

/** Files systemd has a property for. One it is not told about it sets back when it reads its units again. */
const UNIFIED = [
  ['memory.min', 'MemoryMin'],
  ['memory.low', 'MemoryLow'],
] as const;

const unitOf = (path: string): string => basename(path);

const INFINITY = 2n ** 64n - 1n;
const infinite = (value: number): bigint => (value === UNLIMITED ? INFINITY : BigInt(Math.trunc(value)));

const DEFAULT_PERIOD_US = 100_000;
const PERCENT_US = 10_000;

/** systemd keeps whole percents: the amount is rounded up so that the pod never gets less than it was promised. */
const perSecond = (quotaUs: number, periodUs: number): number =>
  Math.ceil(Math.trunc((quotaUs * 1_000_000) / periodUs) / PERCENT_US) * PERCENT_US;

/**
 * The files get what systemd has. The runtime rounds up its containers' quotas as well: on cgroup v1 one that is larger than
 * that of the pod is refused.
 */
function inWholePercents(settings: CgroupSettings): CgroupSettings {
  const { cpuQuotaUs, cpuPeriodUs = DEFAULT_PERIOD_US } = settings;
  if (cpuQuotaUs === undefined || cpuQuotaUs === UNLIMITED) return settings;
  return { ...settings, cpuQuotaUs: Math.trunc((perSecond(cpuQuotaUs, cpuPeriodUs) * cpuPeriodUs) / 1_000_000) };
}
