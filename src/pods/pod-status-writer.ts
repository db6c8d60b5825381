// Makes a pod's status from the world as it is now and puts it into the store. Shared by all states of a worker.
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod, type PodCondition, type PodStatus } from '../core/pod.ts';
import { emptySnapshot, type ObservedContainer, type PodSnapshot } from '../core/snapshot.ts';
import type { Clock } from '../lib/clock.ts';
import type { StartErrors } from './start-errors.ts';

/** Everything the derivation reads besides pod and snapshot; `status/derive.ts` fits. */
export type DeriveFacts = {
  readonly pod: Pod;
  readonly snapshot: PodSnapshot;
  readonly previous: PodStatus;
  readonly startErrors: (container: string) => { readonly reason: string; readonly message: string } | undefined;
  readonly terminationMessage: (container: ObservedContainer) => string;
  readonly terminal: boolean;
  readonly nowMs: number;
};

export type PodStatusWriterDeps = {
  readonly store: {
    statusOf(uid: PodUid): PodStatus | undefined;
    /** The last status, by whoever said it. */
    lastOf(pod: Pod): PodStatus;
    /** `terminal`: all of its containers were stopped for good. */
    set(pod: Pod, status: PodStatus, terminal?: boolean): PodStatus;
  };
  readonly derive: (facts: DeriveFacts) => PodStatus;
  readonly messages: {
    load(snapshot: PodSnapshot, previous: PodSnapshot | undefined): Promise<void>;
    of(container: ObservedContainer): string;
  };
  readonly startErrors: StartErrors;
  readonly events: EventRecorder;
  readonly clock: Clock;
};

const DEADLINE = 'DeadlineExceeded';

export class PodStatusWriter {
  readonly #deps: PodStatusWriterDeps;
  readonly #lastSeen = new Map<PodUid, PodSnapshot>();

  constructor(deps: PodStatusWriterDeps) {
    this.#deps = deps;
  }

  /** Whether this pod's status was written since the agent started. */
  hasWritten(uid: PodUid): boolean {
    return this.#lastSeen.has(uid);
  }

  /** The last status, by whoever said it. */
  last(pod: Pod): PodStatus {
    return this.#deps.store.lastOf(pod);
  }

  /** Derives and stores; `adjust` has the last word (an eviction's reason, a resize condition). */
  async write(
    pod: Pod,
    snapshot: PodSnapshot | undefined,
    options: { readonly terminal?: boolean; readonly adjust?: (status: PodStatus) => PodStatus } = {},
  ): Promise<PodStatus> {
    const { store, derive, messages, startErrors, events, clock } = this.#deps;
    const uid = uidOf(pod);
    const seen = snapshot ?? emptySnapshot(uid, pod.metadata.name, pod.metadata.namespace ?? '');
    await messages.load(seen, this.#lastSeen.get(uid));
    this.#lastSeen.set(uid, seen);
    const status = derive({
      pod,
      snapshot: seen,
      previous: store.lastOf(pod),
      startErrors: (container) => startErrors.get(uid, container),
      terminationMessage: (container) => messages.of(container),
      terminal: options.terminal ?? false,
      nowMs: clock.now(),
    });
    if (status.reason === DEADLINE) events.pod(pod, 'Normal', DEADLINE, status.message ?? '');
    return store.set(pod, options.adjust === undefined ? status : options.adjust(status), options.terminal);
  }

  /** The pod's sandbox is up: said at once, everything else follows with the next full status. */
  sandboxReady(pod: Pod): void {
    const { store } = this.#deps;
    const status = store.statusOf(uidOf(pod));
    if (status === undefined) return;
    const conditions = (status.conditions ?? []).map((c) =>
      c.type === 'PodReadyToStartContainers' ? turnedTrue(c) : c,
    );
    store.set(pod, { ...status, conditions });
  }

  forget(uid: PodUid): void {
    this.#lastSeen.delete(uid);
    this.#deps.startErrors.forget(uid);
  }
}

/** When it turned is for the store to say: the time of the old value is not that of the new one. */
function turnedTrue(condition: PodCondition): PodCondition {
  if (condition.status === 'True') return condition;
  const { lastTransitionTime: _, ...rest } = condition;
  return { ...rest, status: 'True' };
}
