// Retries work that the node can do without for a while: a socket for readers, an optional file. The first failure is logged
// with its path, and so is the recovery.
import { Backoff } from './backoff.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

export type RetryDeps = { readonly clock: Clock; readonly log: Logger };

export type RetryOptions = {
  /** Log message of the first failure. */
  readonly message: string;
  /** File or directory that the work needs. */
  readonly path: string;
};

const RETRY = { baseMs: 1000, maxMs: 60_000 };

/** Resolves with the first success, or with undefined when `signal` aborts. Never rejects. */
export async function retryUntilDone<T>(
  { clock, log }: RetryDeps,
  { message, path }: RetryOptions,
  work: () => Promise<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const backoff = new Backoff(RETRY);
  while (!signal.aborted) {
    try {
      const result = await work();
      if (backoff.failures > 0 && !signal.aborted) log.info('succeeded after failures', { path });
      return result;
    } catch (err) {
      if (backoff.failures === 0) log.error(message, { path, err });
      await clock.sleep(backoff.failed(clock.monotonic()), signal);
    }
  }
  return undefined;
}
