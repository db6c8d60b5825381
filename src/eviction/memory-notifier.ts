// Lets eviction look as soon as memory crosses a threshold, instead of at the next look (`kernelMemcgNotification`). The
// kernel counts what a cgroup uses, thresholds are about what is not in use: what the page cache could give back is added.
import { toNumber } from '../core/quantity.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { MemoryFigure, NodeFigures } from './figures.ts';
import type { Signal } from './signals.ts';
import { amountIn, type Threshold } from './thresholds.ts';

export type MemorySignal = Extract<Signal, 'memory.available' | 'allocatableMemory.available'>;

type Crossing = { crossed(): boolean; close(): void };

export type MemoryNotifierDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** Watches the use of the whole machine's memory, or of all pods'. */
  readonly watch: (signal: MemorySignal, bytes: number) => Promise<Crossing>;
};

/** Nothing in Node can wait for such a descriptor; asking it costs one system call. */
const ASK_EVERY_MS = 250;

export class MemoryNotifier {
  readonly #deps: MemoryNotifierDeps;
  #crossings: readonly Crossing[] = [];
  /** Crossed since the last rest: the look in between may have read its figures before. */
  #missed = false;

  constructor(deps: MemoryNotifierDeps) {
    this.#deps = deps;
  }

  /** Watches where the thresholds lie by these figures, from now on. */
  async update(thresholds: readonly Threshold[], figures: NodeFigures): Promise<void> {
    if (this.#crossed()) this.#missed = true;
    this.close();
    const crossings: Crossing[] = [];
    for (const { signal, bytes } of usageThresholds(thresholds, figures))
      try {
        crossings.push(await this.#deps.watch(signal, bytes));
      } catch (err) {
        this.#deps.log.warn('memory is not watched by the kernel, only at every look', { signal, err: messageOf(err) });
      }
    this.#crossings = crossings;
  }

  /** Resolves after this time, or when a threshold was crossed. */
  async rest(ms: number, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const end = clock.monotonic() + ms;
    while (!signal.aborted) {
      if (this.#crossed() || this.#missed) {
        this.#missed = false;
        return log.info('memory use crossed a threshold');
      }
      const left = end - clock.monotonic();
      if (left <= 0) return;
      await clock.sleep(Math.min(left, ASK_EVERY_MS), signal);
    }
  }

  /** Every one is asked, so that none reports the same crossing again. */
  #crossed(): boolean {
    return this.#crossings.filter((crossing) => crossing.crossed()).length > 0;
  }

  close(): void {
    for (const crossing of this.#crossings) crossing.close();
    this.#crossings = [];
  }
}

const isMemory = (signal: Signal): signal is MemorySignal =>
  signal === 'memory.available' || signal === 'allocatableMemory.available';

/** How much use each memory threshold stands for. */
export function usageThresholds(
  thresholds: readonly Threshold[],
  { memory, systemContainers }: NodeFigures,
): readonly { readonly signal: MemorySignal; readonly bytes: number }[] {
  return thresholds.flatMap(({ signal, value }) => {
    if (!isMemory(signal)) return [];
    const figure = signal === 'memory.available' ? memory : systemContainers.find((c) => c.name === 'pods')?.memory;
    const bytes = figure === undefined ? undefined : usageAt(value, figure);
    return bytes === undefined ? [] : [{ signal, bytes }];
  });
}

function usageAt(value: Threshold['value'], figure: MemoryFigure): number | undefined {
  const { availableBytes, workingSetBytes, usageBytes } = figure;
  if (availableBytes === undefined || workingSetBytes === undefined || usageBytes === undefined) return undefined;
  const capacity = availableBytes + workingSetBytes;
  return capacity - toNumber(amountIn(value, BigInt(capacity))) + (usageBytes - workingSetBytes);
}
