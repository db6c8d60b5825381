// Runs the long-lived parts together. A part that ends early or throws stops them all: a crash and restart under
// systemd beats an agent that is half alive.
import { childScope } from './abort.ts';
import { messageOf } from './errors.ts';
import type { Logger } from './logger.ts';

export interface Runnable {
  readonly name: string;
  /** Settles only when everything it started has stopped. */
  run(signal: AbortSignal): Promise<void>;
}

/** Resolves after an ordered stop, rejects with the first part's failure. */
export async function supervise(parts: readonly Runnable[], log: Logger, signal: AbortSignal): Promise<void> {
  const scope = childScope(signal);
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
    }
  };
  try {
    await Promise.all(parts.map(runPart));
  } finally {
    scope.release();
  }
  if (first !== undefined) throw first;
}
