// The handler of a RuntimeClass. Where the class was known before, a boot without the API server uses that: the wait for
// the server is short then, and none once it is known to be unreachable.
import type { RuntimeClass } from '../core/node.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { isUnreachable, OFFLINE_AFTER_MS } from './api-error.ts';

export type RuntimeHandlersDeps = {
  readonly classes: {
    readonly synced: boolean;
    readonly lastError: unknown;
    whenSynced(signal: AbortSignal): Promise<void>;
    readonly store: { byName(namespace: string | undefined, name: string): RuntimeClass | undefined };
  };
  /** What was known before a boot; absent where nothing is kept. */
  readonly lastKnown?:
    | { get(name: string): RuntimeClass | undefined; set(name: string, value: RuntimeClass): void }
    | undefined;
  readonly clock: Clock;
};

export class RuntimeHandlers {
  readonly #deps: RuntimeHandlersDeps;

  constructor(deps: RuntimeHandlersDeps) {
    this.#deps = deps;
  }

  /** Rejects with `notFound` when there is no such class. */
  async handlerOf(className: string, signal: AbortSignal): Promise<string> {
    const { classes, lastKnown, clock } = this.#deps;
    const before = lastKnown?.get(className);
    const synced = (own: AbortSignal): Promise<void> => classes.whenSynced(own);
    if (before === undefined) await synced(signal);
    else if (!isUnreachable(classes.lastError))
      await withDeadline(clock, signal, OFFLINE_AFTER_MS, synced).catch(() => signal.throwIfAborted());
    if (before !== undefined && !classes.synced) return before.handler;
    const found = classes.store.byName(undefined, className);
    if (found === undefined) throw new KubeletError('notFound', `runtimeclass.node.k8s.io "${className}" not found`);
    lastKnown?.set(className, found);
    return found.handler;
  }
}
