// The life of a pod worker as one union, changed by one pure reducer. Questions other parts ask ("may its volumes go?")
// are functions of this state and nothing else.
import type { Pod, PodStatus } from '../core/pod.ts';

/** Why and how a pod is to be stopped. */
export type PodStopRequest = {
  /** Overrides the pod's own grace period; the smallest of all requests wins. */
  readonly graceSeconds?: number;
  /** Stopped by eviction: its containers may be removed as soon as all have stopped. */
  readonly evicted?: boolean;
  /** Nobody wants the pod any more: it is gone, or on its way out, at its source. */
  readonly deleted?: boolean;
  /** Applied to the status shown while terminating (an eviction's or shutdown's reason). */
  readonly status?: (status: PodStatus) => PodStatus;
};

/** What sticks once a stop was asked for. */
type Stopped = {
  readonly evicted: boolean;
  readonly deleted: boolean;
  /** The same UID was added again meanwhile: once everything is cleaned up the pod starts over. */
  readonly restart: boolean;
};

export type WorkerState =
  | { readonly phase: 'syncing' }
  | ({
      readonly phase: 'terminating';
      readonly since: number;
      readonly graceSeconds: number;
      readonly status?: (status: PodStatus) => PodStatus;
    } & Stopped)
  | ({ readonly phase: 'terminated'; readonly since: number } & Stopped)
  | ({ readonly phase: 'finished' } & Stopped);

export type WorkerEvent =
  | { readonly on: 'stop'; readonly request: PodStopRequest; readonly graceSeconds: number }
  | { readonly on: 'containersStopped' }
  | { readonly on: 'cleanedUp' }
  /** It waited for its turn and had nothing to stop. */
  | { readonly on: 'neverStarted' }
  /** A source that had removed the pod has it again. */
  | { readonly on: 'addedAgain' };

export const initialState: WorkerState = { phase: 'syncing' };

/** Of a pod that had ended before this worker was made. */
export const endedState = (deleted: boolean, now: number): WorkerState => ({
  phase: 'terminated',
  since: now,
  evicted: false,
  deleted,
  restart: false,
});

export function next(state: WorkerState, event: WorkerEvent, now: number): WorkerState {
  if (state.phase === 'syncing') return event.on === 'stop' ? stopping(event.request, event.graceSeconds, now) : state;
  if (event.on === 'addedAgain') return addedAgain(state);
  const { evicted, deleted, restart } = state;
  switch (state.phase) {
    case 'terminating':
      if (event.on === 'stop') return merged(state, event.request, event.graceSeconds);
      if (event.on === 'neverStarted') return cleanedUp(state);
      return event.on === 'containersStopped' ? { phase: 'terminated', since: now, evicted, deleted, restart } : state;
    case 'terminated':
      if (event.on === 'stop') return isDeleted(state, event.request);
      return event.on === 'cleanedUp' || event.on === 'neverStarted' ? cleanedUp(state) : state;
    case 'finished':
      return event.on === 'stop' ? isDeleted(state, event.request) : state;
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
  restart: false,
  ...(request.status === undefined ? {} : { status: request.status }),
});

const merged = (
  state: WorkerState & { phase: 'terminating' },
  request: PodStopRequest,
  graceSeconds: number,
): WorkerState => ({
  ...isDeleted(state, request),
  graceSeconds: Math.min(state.graceSeconds, graceSeconds),
  evicted: state.evicted || request.evicted === true,
  ...(request.status === undefined ? {} : { status: request.status }),
});

/** A deletion sticks, and calls off the restart that was asked for before it. */
const isDeleted = <S extends Stopped>(state: S, { deleted }: PodStopRequest): S =>
  deleted === true ? { ...state, deleted: true, restart: false } : state;

/** The pod starts over after its end; until then its dead containers stay, they count its restarts. */
const addedAgain = (state: Exclude<WorkerState, { phase: 'syncing' }>): WorkerState =>
  state.phase === 'finished' ? initialState : { ...state, evicted: false, deleted: false, restart: true };

const cleanedUp = ({ evicted, deleted, restart }: Stopped): WorkerState =>
  restart ? initialState : { phase: 'finished', evicted, deleted, restart };

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
/** Not before its last status: that tells of each container how it ended. */
export const contentMayBeRemoved = (s: MaybeState, synced: boolean): boolean =>
  s === undefined ? synced : isTerminated(s) && (s.evicted || s.deleted);
export const mayHaveRunningContainers = (s: MaybeState, synced: boolean): boolean =>
  s === undefined ? !synced : !isTerminated(s);
const isTerminated = (s: WorkerState): s is WorkerState & { phase: 'terminated' | 'finished' } =>
  s.phase === 'terminated' || s.phase === 'finished';
