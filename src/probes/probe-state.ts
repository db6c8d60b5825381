// What a probe worker does at each beat, and what one answer means. Pure: the worker's state and what is known about its
// container in, the new state and what to publish out.
import type { Probe } from '../core/pod.ts';

export type ProbeType = 'startup' | 'readiness' | 'liveness';
export type ProbeResult = 'success' | 'failure' | 'unknown';

export const PROBE_TYPES: readonly ProbeType[] = ['startup', 'readiness', 'liveness'];

/** The result that counts before the first probe: nothing is killed, nothing gets traffic. */
const INITIAL: Record<ProbeType, ProbeResult> = {
  liveness: 'success',
  readiness: 'failure',
  startup: 'unknown',
};

export type WorkerState = {
  /** The container instance the results are about. */
  readonly containerId: string | undefined;
  /** A decided probe waits for the next instance. */
  readonly onHold: boolean;
  readonly last: ProbeResult | undefined;
  /** How often `last` came in a row. */
  readonly inARow: number;
};

export const NEW_WORKER: WorkerState = { containerId: undefined, onHold: false, last: undefined, inARow: 0 };

export type ContainerView = {
  readonly containerId: string | undefined;
  readonly running: boolean;
  readonly terminated: boolean;
  /** Whether its restart policy may bring it back. */
  readonly mayRestart: boolean;
  /** Wall time; 0 when unknown. */
  readonly startedAtMs: number;
  /** `started` of the last published status. */
  readonly started: boolean;
  readonly sidecar: boolean;
  /** It was running well before this kubelet began: results of the previous kubelet stand until new ones come. */
  readonly olderThanKubelet: boolean;
};

export type PodView = {
  /** Failed or Succeeded. */
  readonly over: boolean;
  readonly beingDeleted: boolean;
  readonly container: ContainerView | undefined;
};

export type Decision = {
  readonly state: WorkerState;
  readonly next: 'wait' | 'exit' | 'probe';
  /** A result to set for the state's container. */
  readonly publish?: ProbeResult;
  readonly initial?: boolean;
  /** An earlier instance whose result is to be dropped. */
  readonly forget?: string;
};

export function decide(
  type: ProbeType,
  probe: Probe,
  state: WorkerState,
  pod: PodView | undefined,
  nowMs: number,
): Decision {
  if (pod === undefined) return { state, next: 'wait' };
  if (pod.over) return { state, next: 'exit' };
  const { container } = pod;
  if (container?.containerId === undefined) return { state, next: 'wait' };
  if (container.containerId === state.containerId) return judge(type, probe, state, pod, container, nowMs);
  // Answers of one instance count neither for nor against the next.
  const fresh = { ...NEW_WORKER, containerId: container.containerId };
  const first = firstResult(type, container);
  const rest = judge(type, probe, fresh, pod, container, nowMs);
  return {
    ...rest,
    ...(first !== undefined && rest.publish === undefined && { publish: first, initial: true }),
    ...(state.containerId !== undefined && { forget: state.containerId }),
  };
}

function firstResult(type: ProbeType, container: ContainerView): ProbeResult | undefined {
  if (!container.olderThanKubelet) return INITIAL[type];
  return type === 'startup' && container.sidecar && container.started ? 'success' : undefined;
}

function judge(
  type: ProbeType,
  probe: Probe,
  state: WorkerState,
  pod: PodView,
  container: ContainerView,
  nowMs: number,
): Decision {
  if (state.onHold) return { state, next: 'wait' };
  if (!container.running) {
    const over = container.terminated && !container.mayRestart;
    return { state, next: over ? 'exit' : 'wait', publish: 'failure' };
  }
  if (pod.beingDeleted && type !== 'readiness') return { state, next: 'exit', publish: 'success' };
  const ageSeconds = Math.trunc((nowMs - container.startedAtMs) / 1000);
  if (ageSeconds < (probe.initialDelaySeconds ?? 0)) return { state, next: 'wait' };
  const wanted = container.started ? type !== 'startup' : type === 'startup';
  return { state, next: wanted ? 'probe' : 'wait' };
}

const EARLY_MS = 1000;
const EARLY_PACE_MS = 100;

/**
 * How soon to ask again after a failure that says nothing yet: readiness is asked the moment a container runs, and a server
 * needs a moment more until it listens. Undefined when the failure counts.
 */
export function askAgainAfterMs(type: ProbeType, probe: Probe, startedAtMs: number, nowMs: number): number | undefined {
  const ageMs = nowMs - startedAtMs;
  if (type !== 'readiness' || (probe.initialDelaySeconds ?? 0) > 0 || ageMs < 0 || ageMs >= EARLY_MS) return undefined;
  return Math.max(EARLY_PACE_MS, ageMs);
}

/** Counts one answer; publishes when its threshold is reached. */
export function settle(
  type: ProbeType,
  probe: Probe,
  state: WorkerState,
  answer: 'success' | 'failure',
): { readonly state: WorkerState; readonly publish?: ProbeResult } {
  const inARow = state.last === answer ? state.inARow + 1 : 1;
  const counted = { ...state, last: answer, inARow };
  const threshold = answer === 'success' ? (probe.successThreshold ?? 1) : (probe.failureThreshold ?? 3);
  if (inARow < threshold) return { state: counted };
  const decided = type === 'startup' || (type === 'liveness' && answer === 'failure');
  return { state: decided ? { ...counted, onHold: true, inARow: 0 } : counted, publish: answer };
}

/** When the next beat is due. Beats missed while a probe ran are made up for by one at once, the rest are dropped. */
export function nextBeat(
  lastBeat: number,
  periodMs: number,
  now: number,
): { readonly beat: number; readonly at: number } {
  const next = lastBeat + periodMs;
  if (next > now) return { beat: next, at: next };
  return { beat: next + Math.floor((now - next) / periodMs) * periodMs, at: now };
}
