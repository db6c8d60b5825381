// The life of a pod worker as one union, changed by one pure reducer. Questions other parts ask ("may its volumes go?")
// are functions of this state and nothing else.
import type { Pod, PodStatus } from '../core/pod.ts';

/** Why and how a pod is to be stopped. */
export type PodStopRequest = {
  /** Overrides the pod's own grace period; the smallest of all requests wins. */
  readonly graceSeconds?: number;
  /** Stopped by eviction: its content may be removed at once. */
  readonly evicted?: boolean;
  /** Nobody wants the pod any more: it is gone, or on its way out, at its source. */
  readonly deleted?: boolean;
  /** Applied to the status shown while terminating (an eviction's or shutdown's reason). */
  readonly status?: (status: PodStatus) => PodStatus;
};

export type WorkerState =
  | { readonly phase: 'syncing' }
  | {
      readonly phase: 'terminating';
      readonly since: number;
      readonly graceSeconds: number;
      readonly evicted: boolean;
      readonly deleted: boolean;
      readonly status?: (status: PodStatus) => PodStatus;
    }
  | { readonly phase: 'terminated'; readonly since: number; readonly evicted: boolean; readonly deleted: boolean }
  | { readonly phase: 'finished'; readonly evicted: boolean; readonly deleted: boolean };

export type WorkerEvent =
  | { readonly on: 'stop'; readonly request: PodStopRequest; readonly graceSeconds: number }
  | { readonly on: 'containersStopped' }
  | { readonly on: 'cleanedUp' };

export const initialState: WorkerState = { phase: 'syncing' };

export function next(state: WorkerState, event: WorkerEvent, now: number): WorkerState {
  switch (state.phase) {
    case 'syncing':
      return event.on === 'stop' ? stopping(event.request, event.graceSeconds, now) : state;
    case 'terminating':
      if (event.on === 'stop') return merged(state, event.request, event.graceSeconds);
      return event.on === 'containersStopped'
        ? { phase: 'terminated', since: now, evicted: state.evicted, deleted: state.deleted }
        : state;
    case 'terminated':
      if (event.on === 'stop') return { ...state, deleted: state.deleted || event.request.deleted === true };
      return event.on === 'cleanedUp' ? { phase: 'finished', evicted: state.evicted, deleted: state.deleted } : state;
    case 'finished':
      return event.on === 'stop' && event.request.deleted === true ? { ...state, deleted: true } : state;
    default:
      return state satisfies never;
  }
}

const stopping = (request: PodStopRequest, graceSeconds: number, now: number): WorkerState => ({
  phase: 'terminating',
  since: now,
  graceSeconds,
  evicted: request.evicted === true,
  deleted: request.deleted === true,
  ...(request.status === undefined ? {} : { status: request.status }),
});

const merged = (
  state: WorkerState & { phase: 'terminating' },
  request: PodStopRequest,
  graceSeconds: number,
): WorkerState => ({
  ...state,
  graceSeconds: Math.min(state.graceSeconds, graceSeconds),
  evicted: state.evicted || request.evicted === true,
  deleted: state.deleted || request.deleted === true,
  ...(request.status === undefined ? {} : { status: request.status }),
});

/** The grace a stop request means for this pod: the smallest that anybody asked for, at least one second. */
export function graceFor(pod: Pod | undefined, request: PodStopRequest): number {
  const asked = [request.graceSeconds, pod?.metadata.deletionGracePeriodSeconds].filter((g) => g !== undefined);
  const seconds = asked.length > 0 ? Math.min(...asked) : (pod?.spec.terminationGracePeriodSeconds ?? 1);
  return Math.max(1, seconds);
}

// ---- what other parts may ask; `undefined` is a pod without a worker, `synced` whether that means anything yet ----

type MaybeState = WorkerState | undefined;

export const containersShouldStop = (s: MaybeState, synced: boolean): boolean =>
  s === undefined ? synced : s.phase !== 'syncing';
export const runtimeMayBeRemoved = (s: MaybeState, synced: boolean): boolean =>
  s === undefined ? synced : isTerminated(s);
export const contentMayBeRemoved = (s: MaybeState, synced: boolean): boolean =>
  s === undefined ? synced : s.phase !== 'syncing' && (s.evicted || (s.deleted && isTerminated(s)));
export const mayHaveRunningContainers = (s: MaybeState, synced: boolean): boolean =>
  s === undefined ? !synced : !isTerminated(s);
const isTerminated = (s: WorkerState): boolean => s.phase === 'terminated' || s.phase === 'finished';
