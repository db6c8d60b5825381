// Keeps the kubelet in the cgroup it was given (`kubeletCgroups`), and processes that are in none in that of the system
// (`systemCgroups`). Somebody else may move them: looked after every minute.
import type { Environment } from '../config/environment.ts';
import { detectCgroups } from '../host/cgroups/layout.ts';
import { Placement } from '../host/cgroups/placement.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';

const EVERY_MS = 60_000;

export type SystemCgroupsDeps = {
  readonly processes: Pick<Placement, 'place' | 'unplaced'>;
  readonly clock: Clock;
  readonly log: Logger;
};
/** Empty: not wanted. */
export type SystemCgroupsOptions = { readonly kubelet: string; readonly system: string; readonly pid: number };

export class SystemCgroups implements Runnable {
  readonly name = 'system-cgroups';
  readonly #deps: SystemCgroupsDeps;
  readonly #o: SystemCgroupsOptions;

  constructor(deps: SystemCgroupsDeps, options: SystemCgroupsOptions) {
    if (options.system === '/') throw new KubeletError('invalid', 'system container cannot be root ("/")');
    this.#deps = deps;
    this.#o = options;
  }

  run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    return runEvery(clock, log, { name: this.name, everyMs: EVERY_MS }, (s) => this.#look(s), signal);
  }

  /** The kubelet first: where it was in no cgroup, it would be taken for one of the system's processes. */
  async #look(signal: AbortSignal): Promise<void> {
    const { kubelet, system, pid } = this.#o;
    if (kubelet !== '') await this.#put(kubelet, () => [pid], signal);
    if (system !== '') await this.#put(system, () => this.#deps.processes.unplaced(), signal);
  }

  /** Not being where it should be keeps no pod from running. */
  async #put(
    cgroup: string,
    who: () => readonly number[] | Promise<readonly number[]>,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await this.#deps.processes.place(cgroup, await who(), signal);
    } catch (err) {
      signal.throwIfAborted();
      this.#deps.log.warn('processes could not be put into their cgroup, will try again', { cgroup, err });
    }
  }
}

/** None where the configuration names no place. */
export async function createSystemCgroups({ clock, config, log }: Environment): Promise<readonly Runnable[]> {
  const { kubeletCgroups: kubelet, systemCgroups: system } = config;
  if (kubelet === '' && system === '') return [];
  const processes = new Placement(clock, await detectCgroups());
  const deps = { processes, clock, log: log.child({ component: 'cgroups' }) };
  return [new SystemCgroups(deps, { kubelet, system, pid: process.pid })];
}
