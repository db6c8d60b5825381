// Deadlines and cancellation. `AbortSignal.any` and `.timeout` are banned elsewhere: with a process-long parent
// `any` keeps every child alive, and `timeout` ignores the injected clock.
import type { Clock } from './clock.ts';
import { KubeletError } from './errors.ts';

/** Runs `op` with a signal that aborts with the parent or after `ms`. `op` must honour its signal. */
export async function withDeadline<T>(
  clock: Clock,
  parent: AbortSignal,
  ms: number,
  op: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  parent.throwIfAborted();
  const scope = childScope(parent);
  const timer = clock.after(ms, () => scope.abort(new KubeletError('deadline', `no answer in ${ms}ms`)));
  try {
    return await op(scope.signal);
  } finally {
    timer.cancel();
    scope.release();
  }
}

export interface Scope {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** Detaches from the parent. Always call it, in `finally`. */
  release(): void;
}

/** A child signal that can be aborted on its own and leaves nothing behind on its parent once released. */
export function childScope(parent: AbortSignal): Scope {
  const own = new AbortController();
  const up = (): void => own.abort(parent.reason);
  if (parent.aborted) up();
  else parent.addEventListener('abort', up, { once: true });
  return {
    signal: own.signal,
    abort: (reason) => own.abort(reason ?? new KubeletError('cancelled', 'cancelled')),
    release: () => parent.removeEventListener('abort', up),
  };
}

/** Settles with `promise`, or rejects when `signal` aborts. For waiting on something that cannot be cancelled itself. */
export function abortable<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => undefined); // nobody waits for it any more
    return Promise.reject(reasonOf(signal));
  }
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => reject(reasonOf(signal));
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Resolves when `signal` aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

const reasonOf = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new KubeletError('cancelled', String(signal.reason));
