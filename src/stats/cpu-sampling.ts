// Samples processor time now and then, so that whoever asks first already gets a rate; who asks again and again is a sample
// each time. One small file per cgroup: with a hundred pods that is much of what an idle node reads.
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { takeCensus, type CgroupPlaces } from './census.ts';
import { ROOT } from './cgroup-readings.ts';
import type { CpuRates } from './cpu-rates.ts';

interface CpuSource {
  children(path: string): Promise<readonly string[]>;
  cpuUsageNs(path: string, signal: AbortSignal): Promise<number | undefined>;
}

export type CpuSamplingDeps = {
  readonly cgroups: CpuSource;
  readonly places: CgroupPlaces;
  readonly rates: CpuRates;
  readonly clock: Clock;
  readonly log: Logger;
};

const EVERY_MS = 60_000;
const JITTER = 0.2;

export class CpuSampling implements Runnable {
  readonly name = 'cpu-sampling';
  readonly #deps: CpuSamplingDeps;

  constructor(deps: CpuSamplingDeps) {
    this.#deps = deps;
  }

  run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    return runEvery(
      clock,
      log,
      { name: this.name, everyMs: EVERY_MS, jitter: JITTER },
      (stop) => this.sample(stop),
      signal,
    );
  }

  async sample(signal: AbortSignal): Promise<void> {
    const { cgroups, places, rates, clock } = this.#deps;
    const pods = [...(await takeCensus(cgroups, places)).values()];
    const paths = new Set([
      ROOT,
      ...places.tiers,
      ...places.system.map(({ path }) => path),
      ...pods.flatMap(({ path, members }) => [path, ...members.values()]),
    ]);
    await Promise.all(
      [...paths].map(async (path) => {
        const usageNs = await cgroups.cpuUsageNs(path, signal);
        if (usageNs !== undefined) rates.observe(path, usageNs, clock.monotonic());
      }),
    );
    rates.keepOnly(paths);
  }
}
