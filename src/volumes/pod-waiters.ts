// Promises that resolve when a condition about a pod, or about all pods, has come true. Conditions are asked again when the
// pod has changed.
import { KubeletError } from '../lib/errors.ts';

type Waiter = { readonly uid: string; readonly isDone: () => boolean; readonly resolve: () => void };

export class PodWaiters {
  readonly #waiters = new Set<Waiter>();

  /** Resolves once `isDone` holds; an empty UID asks again after a change of any pod. */
  until(uid: string, isDone: () => boolean, signal: AbortSignal): Promise<void> {
    if (isDone()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiters.delete(waiter);
        reject(signal.reason instanceof Error ? signal.reason : new KubeletError('cancelled', 'cancelled'));
      };
      const waiter: Waiter = {
        uid,
        isDone,
        resolve: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      if (signal.aborted) return onAbort();
      this.#waiters.add(waiter);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** The pod has changed. */
  changed(uid: string): void {
    for (const waiter of this.#waiters) {
      if ((waiter.uid !== uid && waiter.uid !== '') || !waiter.isDone()) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
