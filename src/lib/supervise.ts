// Runs the long-lived parts together. A part that ends early or throws stops them all: a crash and restart under
// systemd beats an agent that is half alive. A part that does not stop when told is left behind after a while.
import { childScope } from './abort.ts';
import type { Clock, Timer } from './clock.ts';
import { messageOf } from './errors.ts';
import type { Logger } from './logger.ts';

export interface Runnable {
  readonly name: string;
  /** Settles only when everything it started has stopped. */
  run(signal: AbortSignal): Promise<void>;
}

/** How long parts may take to stop; then the process ends without them. */
const STOP_MS = 30_000;

export type SuperviseDeps = { readonly clock: Clock; readonly log: Logger };

/** Resolves after an ordered stop, rejects with the first part's failure. */
export async function supervise(
  parts: readonly Runnable[],
  { clock, log }: SuperviseDeps,
  signal: AbortSignal,
): Promise<void> {
  const scope = childScope(signal);
  const running = new Set(parts);
  const overdue = Promise.withResolvers<void>();
  let timer: Timer | undefined;
  const stopping = (): void => {
    timer = clock.after(STOP_MS, () => {
      log.error('components did not stop in time', { components: [...running].map(({ name }) => name).join(', ') });
      overdue.resolve();
    });
  };
  let first: Error | undefined;
  const runPart = async (part: Runnable): Promise<void> => {
    try {
      await part.run(scope.signal);
      if (!scope.signal.aborted) throw new Error(`${part.name} ended although nobody asked it to`);
    } catch (err) {
      if (scope.signal.aborted) {
        if (err !== scope.signal.reason) log.debug('component failed while stopping', { component: part.name, err });
        return;
      }
      first = err instanceof Error ? err : new Error(messageOf(err));
      log.error('component died, stopping the kubelet', { component: part.name, err });
      scope.abort(err);
    } finally {
      running.delete(part);
    }
  };
  if (scope.signal.aborted) stopping();
  else scope.signal.addEventListener('abort', stopping, { once: true });
  try {
    await Promise.race([Promise.all(parts.map(runPart)), overdue.promise]);
  } finally {
    timer?.cancel();
    scope.release();
  }
  if (first !== undefined) throw first;
}
