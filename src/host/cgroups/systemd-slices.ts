// The systemd driver: slices are asked of systemd (over busctl, arguments only, no shell) so that it accepts them as
// its own; what systemd cannot express is written to the files afterwards by the cgroup access below it.
import { execFile } from 'node:child_process';
import { basename } from 'node:path';
import { toolEnvironment } from '../../lib/child-environment.ts';
import type { Clock } from '../../lib/clock.ts';
import { isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import { UNLIMITED, weightOfShares, type CgroupReading, type Cgroups, type CgroupSettings } from './cgroups.ts';

/** Runs `busctl` with these arguments. Rejects with what it printed. */
export type BusCall = (args: readonly string[], signal: AbortSignal) => Promise<string>;

export type SystemdDeps = { readonly files: Cgroups; readonly bus: BusCall; readonly clock: Clock };

const MANAGER = ['org.freedesktop.systemd1', '/org/freedesktop/systemd1', 'org.freedesktop.systemd1.Manager'];
const SETTLE_MS = 5000;
const POLL_MS = 5;

export class SystemdSlices implements Cgroups {
  readonly #deps: SystemdDeps;

  constructor(deps: SystemdDeps) {
    this.#deps = deps;
  }

  get version(): 1 | 2 {
    return this.#deps.files.version;
  }

  async create(path: string, settings: CgroupSettings, signal: AbortSignal): Promise<void> {
    if (await this.#isThere(path, signal)) await this.#setProperties(path, settings, signal);
    else {
      await this.#start(path, settings, signal);
      await this.#appeared(path, signal);
    }
    await this.#deps.files.create(path, settings, signal);
  }

  async update(path: string, settings: CgroupSettings, signal: AbortSignal): Promise<void> {
    await this.#setProperties(path, settings, signal);
    await this.#deps.files.update(path, settings, signal);
  }

  async destroy(path: string, signal: AbortSignal): Promise<void> {
    await this.#manager('StopUnit', ['ss', unitOf(path), 'replace'], signal).catch((err: unknown) => {
      if (!isUnknownUnit(err)) throw err;
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
    const unit = unitOf(path);
    const properties = [
      ['Description', 's', `kubernetes slice ${unit}`],
      ['DefaultDependencies', 'b', 'false'],
      ...['CPUAccounting', 'MemoryAccounting', 'TasksAccounting', 'IOAccounting'].map((name) => [name, 'b', 'true']),
      ...this.#propertiesOf(settings),
    ];
    const args = ['ssa(sv)a(sa(sv))', unit, 'replace', String(properties.length), ...properties.flat(), '0'];
    await this.#manager('StartTransientUnit', args, signal).catch(async (err: unknown) => {
      // Known to systemd from before, without its cgroup: start it again as it is.
      if (!/UnitExists|already exists|already loaded/.test(messageOf(err))) throw err;
      await this.#manager('StartUnit', ['ss', unit, 'replace'], signal);
      await this.#setProperties(path, settings, signal);
    });
  }

  async #setProperties(path: string, settings: CgroupSettings, signal: AbortSignal): Promise<void> {
    const properties = this.#propertiesOf(settings);
    if (properties.length === 0) return;
    const args = ['sba(sv)', unitOf(path), 'true', String(properties.length), ...properties.flat()];
    await this.#manager('SetUnitProperties', args, signal);
  }

  #propertiesOf(s: CgroupSettings): string[][] {
    const v2 = this.version === 2;
    const properties: string[][] = [];
    const add = (name: string, value: number | string): unknown => properties.push([name, 't', String(value)]);
    if (s.cpuShares !== undefined)
      if (v2) add('CPUWeight', weightOfShares(s.cpuShares));
      else add('CPUShares', s.cpuShares);
    if (s.cpuQuotaUs !== undefined) {
      add('CPUQuotaPeriodUSec', s.cpuPeriodUs ?? 100_000);
      add('CPUQuotaPerSecUSec', perSecond(s.cpuQuotaUs, s.cpuPeriodUs ?? 100_000));
    }
    if (s.memoryBytes !== undefined) add(v2 ? 'MemoryMax' : 'MemoryLimit', infinite(s.memoryBytes));
    if (s.pidsMax !== undefined) add('TasksMax', infinite(s.pidsMax));
    return properties;
  }

  /** systemd answers before its job is done. */
  async #appeared(path: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const until = clock.monotonic() + SETTLE_MS;
    while (!(await this.#isThere(path, signal))) {
      signal.throwIfAborted();
      if (clock.monotonic() > until)
        throw new KubeletError('deadline', `systemd did not make ${unitOf(path)} within ${SETTLE_MS}ms`);
      await clock.sleep(POLL_MS, signal);
    }
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

  #manager(method: string, args: readonly string[], signal: AbortSignal): Promise<string> {
    return this.#deps.bus(['--system', 'call', ...MANAGER, method, ...args], signal);
  }
}

const unitOf = (path: string): string => basename(path);

const INFINITY = '18446744073709551615';
const infinite = (value: number): string => (value === UNLIMITED ? INFINITY : String(value));

/** systemd keeps whole percents: the amount is rounded up so that the pod never gets less than it was promised. */
const perSecond = (quotaUs: number, periodUs: number): string =>
  quotaUs === UNLIMITED ? INFINITY : String(Math.ceil((quotaUs * 1_000_000) / periodUs / 10_000) * 10_000);

const isUnknownUnit = (err: unknown): boolean => /NoSuchUnit|not loaded|not found/i.test(messageOf(err));

export const busctl: BusCall = (args, signal) =>
  new Promise((resolve, reject) => {
    execFile(
      'busctl',
      args,
      { signal, timeout: 30_000, env: toolEnvironment(['DBUS_SYSTEM_BUS_ADDRESS']) },
      (err, stdout, stderr) => {
        if (err === null) resolve(stdout);
        else
          reject(
            new KubeletError('unavailable', `busctl ${args[5] ?? ''}: ${stderr.trim() || err.message}`, { cause: err }),
          );
      },
    );
  });
