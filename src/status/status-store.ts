// The last status of every pod, by UID. Written by the pod's worker, read by everybody; a change is announced so that
// status-sync.ts can send it. Times are stamped here because only the store knows what was said before.
import type { PodUid } from '../core/ids.ts';
import {
  isStaticPod,
  uidOf,
  type ContainerState,
  type ContainerStatus,
  type Pod,
  type PodCondition,
  type PodStatus,
} from '../core/pod.ts';
import { mayRestartAll, restartsAfterExit } from '../core/restart-policy.ts';
import { apiTime } from '../core/time.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { sameData } from '../lib/same-data.ts';
import { madeUpTermination } from './container-status.ts';
import { withCurrentExplanation, withExplanation, type Explanation } from './explanation.ts';
import { isFinalPhase } from '../core/phase.ts';
import { withoutEnd } from '../lib/text.ts';

export type StoredStatus = {
  readonly pod: Pod;
  readonly status: PodStatus;
  /** Grows with every change; what was sent to the API server is remembered by version. */
  readonly version: number;
  /** The worker is done with the pod: the API object may be deleted once its phase is final. */
  readonly finished: boolean;
  /** The pod has started over since. */
  readonly reopened?: boolean;
  /** Whether its main containers may have run, by the last status from before they were all stopped. */
  readonly initialised?: boolean;
};

export type StatusStoreDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly onChange: (uid: PodUid) => void;
  /** What the API server shows of a pod whose own object has no status: a static pod's mirror. */
  readonly shown?: (pod: Pod) => PodStatus | undefined;
  /** Whether a condition may say why a pod is not ready. */
  readonly explains?: boolean;
};

const MAX_MESSAGES_BYTES = 12_288;
/** Of the messages of a pod's waiting containers, and of the pod's own; docs/SECURITY.md, section "Bounds". */
const WAITING_BYTES = 64 * 1024;
/** Of one UTF-16 unit in UTF-8. */
const MOST_BYTES = 3;

export class StatusStore {
  readonly #deps: StatusStoreDeps;
  readonly #entries = new Map<PodUid, StoredStatus>();

  constructor(deps: StatusStoreDeps) {
    this.#deps = deps;
  }

  get(uid: PodUid): StoredStatus | undefined {
    return this.#entries.get(uid);
  }

  statusOf(uid: PodUid): PodStatus | undefined {
    return this.#entries.get(uid)?.status;
  }

  /** Our last status of a pod or, before we said anything (after a restart), the one the API server shows. */
  lastOf(pod: Pod): PodStatus {
    return this.statusOf(uidOf(pod)) ?? this.#deps.shown?.(pod) ?? pod.status ?? {};
  }

  all(): Iterable<[PodUid, StoredStatus]> {
    return this.#entries.entries();
  }

  /**
   * Records a status. Equal ones change nothing, except that a pod being deleted is announced again. `terminal`: all of its
   * containers were stopped for good, so that how they ended tells nothing about how far the pod had come.
   */
  set(pod: Pod, next: PodStatus, terminal = false): PodStatus {
    const uid = uidOf(pod);
    const old = this.#entries.get(uid);
    const base = this.lastOf(pod);
    const refused = old === undefined || old.reopened === true ? undefined : resurrected(pod, old.status, next);
    if (refused !== undefined) {
      this.#deps.log.warn('status refused: a container that ended for good would be alive again', {
        container: refused,
        uid,
      });
      return base;
    }
    const current = withCurrentExplanation(limitMessages(next), this.#deps.explains === true);
    const status = stamped(current, base, this.#deps.clock.now());
    const changed = old === undefined || !sameData(old.status, status);
    const shown = changed ? status : old.status;
    const initialised = terminal ? old?.initialised : hasInitialised(pod, shown);
    if (changed || old.pod !== pod || old.reopened === true || old.initialised !== initialised)
      this.#entries.set(uid, {
        pod,
        status: shown,
        version: (old?.version ?? 0) + (changed ? 1 : 0),
        finished: old?.finished ?? false,
        ...(initialised === undefined ? {} : { initialised }),
      });
    if (changed || pod.metadata.deletionTimestamp !== undefined) this.#deps.onChange(uid);
    return shown;
  }

  /** A container that waits to be created says what for. Gone with the next full status. */
  setWaitingMessage(pod: Pod, container: string, message: string): void {
    const status = this.statusOf(uidOf(pod));
    const next = status === undefined ? undefined : withWaitingMessage(status, container, message);
    if (next !== undefined) this.set(pod, next);
  }

  /** Why the pod is not ready, as a condition. Gone with the status that shows it ready or ended. */
  explain(uid: PodUid, explanation: Explanation): void {
    const entry = this.#entries.get(uid);
    if (entry !== undefined) this.set(entry.pod, withExplanation(entry.pod, entry.status, explanation));
  }

  /** The worker has stopped everything and cleaned up: whatever is still open in the status is closed now. */
  finish(pod: Pod): void {
    const uid = uidOf(pod);
    const last = this.lastOf(pod);
    const initialised = this.#entries.get(uid)?.initialised ?? hasInitialised(pod, last);
    this.set(pod, terminated(pod, last, initialised), true);
    const entry = this.#entries.get(uid);
    if (entry !== undefined) this.#entries.set(uid, { ...entry, finished: true });
    this.#deps.onChange(uid);
  }

  /** The pod starts over under its UID: that its containers had ended for good holds no longer. */
  reopen(uid: PodUid): void {
    const entry = this.#entries.get(uid);
    if (entry !== undefined) this.#entries.set(uid, { ...entry, finished: false, reopened: true });
  }

  /** Drops the statuses of all pods but these. */
  keepOnly(uids: ReadonlySet<PodUid>): void {
    for (const uid of this.#entries.keys()) if (!uids.has(uid)) this.#entries.delete(uid);
  }

  delete(uid: PodUid): void {
    this.#entries.delete(uid);
  }
}

const BEFORE_CREATION: readonly (string | undefined)[] = ['ContainerCreating', 'PodInitializing'];

/** Undefined where the container does not wait to be created: a failure has its own message. */
function withWaitingMessage(status: PodStatus, container: string, message: string): PodStatus | undefined {
  let found = false;
  const amend = (all: readonly ContainerStatus[]): ContainerStatus[] =>
    all.map((s) => {
      if (s.name !== container || !BEFORE_CREATION.includes(s.state.waiting?.reason)) return s;
      found = true;
      return { ...s, state: { waiting: { ...s.state.waiting, message } } };
    });
  const { initContainerStatuses, containerStatuses } = status;
  const next = {
    ...status,
    ...(initContainerStatuses === undefined ? {} : { initContainerStatuses: amend(initContainerStatuses) }),
    ...(containerStatuses === undefined ? {} : { containerStatuses: amend(containerStatuses) }),
  };
  return found ? next : undefined;
}

function stamped(next: PodStatus, old: PodStatus, nowMs: number): PodStatus {
  const now = (): string => apiTime(nowMs);
  const conditions = (next.conditions ?? []).map((c): PodCondition => {
    const before = old.conditions?.find((o) => o.type === c.type);
    const kept = before?.status === c.status ? before.lastTransitionTime : undefined;
    return { ...c, lastTransitionTime: kept ?? c.lastTransitionTime ?? now() };
  });
  const startTime = old.startTime ?? next.startTime ?? now();
  return { ...next, startTime, ...(next.conditions === undefined ? {} : { conditions }) };
}

/**
 * A container that ended and is not to be restarted must not come back to life in the status. A new sandbox starts
 * containers again that had ended by a policy of their own.
 */
function resurrected(pod: Pod, old: PodStatus, next: PodStatus): string | undefined {
  const { restartPolicy = 'Always' } = pod.spec;
  if (restartPolicy === 'Always' || mayRestartAll(pod)) return undefined;
  for (const c of pod.spec.containers) {
    const before = old.containerStatuses?.find((s) => s.name === c.name);
    const after = next.containerStatuses?.find((s) => s.name === c.name);
    const ended = before?.state.terminated;
    if (before === undefined || ended === undefined || after === undefined) continue;
    if (after.state.terminated !== undefined || ended.reason === 'ContainerStatusUnknown') continue;
    if (after.containerID !== before.containerID && after.restartCount > before.restartCount) continue;
    const mayRestart = ended.exitCode !== 0 && restartPolicy === 'OnFailure';
    if (!mayRestart && !restartsAfterExit(c, pod, ended.exitCode)) return c.name;
  }
  return undefined;
}

function terminated(pod: Pod, status: PodStatus, initialised: boolean): PodStatus {
  const close = (s: ContainerStatus): ContainerStatus =>
    s.state.terminated !== undefined
      ? s
      : {
          ...s,
          ready: false,
          state: {
            terminated: madeUpTermination(
              'ContainerStatusUnknown',
              'The container could not be located when the pod was terminated',
            ),
          },
        };
  const init = status.initContainerStatuses ?? [];
  const wasStarted = ({ state, lastState }: ContainerStatus): boolean =>
    state.waiting === undefined || lastState.terminated !== undefined;
  // All up to the last that was ever started, and the first in any case.
  const reached = Math.max(0, init.findLastIndex(wasStarted));
  const out: PodStatus = {
    ...status,
    ...(init.length > 0 ? { initContainerStatuses: init.map((s, i) => (i <= reached ? close(s) : s)) } : {}),
    ...(status.containerStatuses === undefined || !initialised
      ? {}
      : { containerStatuses: status.containerStatuses.map(close) }),
  };
  if (isStaticPod(pod) || isFinalPhase(out.phase)) return out;
  return { ...out, phase: 'Failed' };
}

/** Whether its main containers may ever have run: one has left its waiting state, or the last init container is done. */
function hasInitialised(pod: Pod, { containerStatuses = [], initContainerStatuses = [] }: PodStatus): boolean {
  if ((pod.spec.initContainers ?? []).length === 0) return true;
  if (containerStatuses.some((s) => s.state.waiting === undefined || s.lastState.terminated !== undefined)) return true;
  const last = initContainerStatuses.at(-1);
  if (last === undefined) return false;
  if (pod.spec.initContainers?.at(-1)?.restartPolicy === 'Always')
    return last.state.running !== undefined && last.started === true;
  return last.state.terminated?.exitCode === 0 || last.lastState.terminated?.exitCode === 0;
}

/**
 * A pod's termination messages share a fixed space, and so do those of its waiting containers: they quote the pod and the
 * runtime, whose texts may be of any length, and a status that doubles a pod is more than etcd takes.
 */
function limitMessages(status: PodStatus): PodStatus {
  const lists = [status.initContainerStatuses, status.containerStatuses, status.ephemeralContainerStatuses];
  const count = Math.max(
    1,
    lists.reduce((sum, list) => sum + (list?.length ?? 0), 0),
  );
  const limits = { terminated: Math.floor(MAX_MESSAGES_BYTES / count), waiting: Math.floor(WAITING_BYTES / count) };
  const tooLong = (s: ContainerStatus): boolean =>
    [s.state, s.lastState].some(
      ({ terminated, waiting }) =>
        isLonger(terminated?.message, limits.terminated) || isLonger(waiting?.message, limits.waiting),
    );
  const whole = isLonger(status.message, WAITING_BYTES)
    ? { ...status, message: beginning(status.message, WAITING_BYTES) }
    : status;
  if (!lists.some((list) => list?.some(tooLong))) return whole;
  const cut = (s: ContainerStatus): ContainerStatus => ({
    ...s,
    state: cutState(s.state, limits),
    lastState: cutState(s.lastState, limits),
  });
  return {
    ...whole,
    ...(status.initContainerStatuses === undefined
      ? {}
      : { initContainerStatuses: status.initContainerStatuses.map(cut) }),
    ...(status.containerStatuses === undefined ? {} : { containerStatuses: status.containerStatuses.map(cut) }),
    ...(status.ephemeralContainerStatuses === undefined
      ? {}
      : { ephemeralContainerStatuses: status.ephemeralContainerStatuses.map(cut) }),
  };
}

type Limits = { readonly terminated: number; readonly waiting: number };

function cutState(state: ContainerState, limits: Limits): ContainerState {
  const { terminated, waiting } = state;
  if (terminated !== undefined && isLonger(terminated.message, limits.terminated))
    return { terminated: { ...terminated, message: beginning(terminated.message, limits.terminated) } };
  if (waiting !== undefined && isLonger(waiting.message, limits.waiting))
    return { waiting: { ...waiting, message: beginning(waiting.message, limits.waiting) } };
  return state;
}

const isLonger = (text: string | undefined, bytes: number): boolean =>
  text !== undefined && text.length * MOST_BYTES > bytes && Buffer.byteLength(text) > bytes;

/** Only what can be among the bytes is encoded. */
const beginning = (text: string | undefined, bytes: number): string =>
  withoutEnd(
    Buffer.from((text ?? '').slice(0, bytes))
      .subarray(0, bytes)
      .toString('utf8'),
    '\uFFFD',
  );
