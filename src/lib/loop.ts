// The only way to do periodic work. Ticks never overlap, a throwing tick is logged and the loop lives on.
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

export type LoopOptions = {
  name: string;
  everyMs: number;
  /** Extra wait of up to this fraction of the period, so that nodes do not march in step. */
  jitter?: number;
  /** Wait one period before the first tick. */
  delayFirst?: boolean;
};

export async function runEvery(
  clock: Clock,
  log: Logger,
  options: LoopOptions,
  tick: (signal: AbortSignal) => Promise<void> | void,
  signal: AbortSignal,
): Promise<void> {
  const pause = (): Promise<void> =>
    clock.sleep(options.everyMs * (1 + (options.jitter ?? 0) * clock.random()), signal);
  if (options.delayFirst === true) await pause();
  while (!signal.aborted) {
    try {
      await tick(signal);
    } catch (err) {
      if (!signal.aborted) log.error('loop tick failed', { loop: options.name, err });
    }
    await pause();
  }
}
