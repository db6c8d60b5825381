// Cgroups as readings: statistics, when they were read, and the rate since the last sample.
import type { CgroupStatistics, Detail } from '../host/cgroups/statistics.ts';
import type { Clock } from '../lib/clock.ts';
import type { CpuRates } from './cpu-rates.ts';
import type { Reading } from './summary.ts';

interface StatisticsSource {
  read(path: string, detail: Detail, signal: AbortSignal): Promise<CgroupStatistics | undefined>;
}

interface RootFacts {
  readonly memoryBytes: number;
  readonly swapBytes: number;
  readonly swapUsedBytes: number;
}

export const ROOT = '/';

export class CgroupReadings {
  readonly #source: StatisticsSource;
  readonly #rates: CpuRates;
  readonly #clock: Clock;

  constructor(source: StatisticsSource, rates: CpuRates, clock: Clock) {
    this.#source = source;
    this.#rates = rates;
    this.#clock = clock;
  }

  /** Undefined when there is no such cgroup. */
  async read(path: string, detail: Detail, signal: AbortSignal): Promise<Reading | undefined> {
    const stats = await this.#source.read(path, detail, signal);
    if (stats === undefined) return undefined;
    const nanoCores =
      stats.cpu === undefined ? 0 : this.#rates.observe(path, stats.cpu.usageNs, this.#clock.monotonic());
    return { atMs: this.#clock.now(), stats, nanoCores };
  }

  /** The root cgroup has no limits of its own: the machine is its limit. */
  async readRoot(machine: RootFacts, detail: Detail, signal: AbortSignal): Promise<Reading | undefined> {
    const reading = await this.read(ROOT, detail, signal);
    if (reading?.stats.memory === undefined) return reading;
    const { memory } = reading.stats;
    return {
      ...reading,
      stats: {
        ...reading.stats,
        memory: {
          ...memory,
          limitBytes: machine.memoryBytes,
          swapLimitBytes: machine.swapBytes,
          swapBytes: memory.swapBytes > 0 ? memory.swapBytes : machine.swapUsedBytes,
        },
      },
    };
  }
}
