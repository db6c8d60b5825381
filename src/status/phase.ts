// The phase of a pod, from its container statuses. Pure.
import { named } from '../lib/by-name.ts';
import { isSidecar, isStaticPod, type Container, type ContainerStatus, type Pod, type PodPhase } from '../core/pod.ts';
import { RESTARTING_ALL, restartsAfterExit } from '../core/restart-policy.ts';

type Counts = {
  pendingInit: number;
  failedInitFinal: number;
  pendingSidecar: number;
  running: number;
  waiting: number;
  stopped: number;
  succeeded: number;
  stoppedFinal: number;
  unknown: number;
};

export type PhaseOptions = {
  /** Every container has been stopped for good, whatever the restart policy says. */
  readonly terminal: boolean;
  /** A main container was made in the sandbox that is in use. */
  readonly initialised: boolean;
};

const find = (statuses: readonly ContainerStatus[] | undefined, name: string): ContainerStatus | undefined =>
  statuses === undefined ? undefined : named(statuses, name);

export function phaseOf(
  pod: Pod,
  statuses: { readonly init: readonly ContainerStatus[]; readonly main: readonly ContainerStatus[] },
  options: PhaseOptions,
): PodPhase {
  const n: Counts = {
    pendingInit: 0,
    failedInitFinal: 0,
    pendingSidecar: 0,
    running: 0,
    waiting: 0,
    stopped: 0,
    succeeded: 0,
    stoppedFinal: 0,
    unknown: 0,
  };
  for (const c of pod.spec.initContainers ?? []) {
    const status = find(statuses.init, c.name);
    if (isSidecar(c)) countSidecar(n, status);
    else countInit(n, c, pod, status);
  }
  for (const c of pod.spec.containers) countMain(n, c, pod, find(statuses.main, c.name));
  return decide(n, pod, options);
}

function decide(n: Counts, pod: Pod, { terminal, initialised }: PhaseOptions): PodPhase {
  if (n.failedInitFinal > 0) return 'Failed';
  if (n.pendingInit > 0 || (n.pendingSidecar > 0 && !initialised) || n.waiting > 0) return 'Pending';
  if (n.running > 0 && n.unknown === 0) return 'Running';
  if (n.running === 0 && n.stopped > 0 && n.unknown === 0) {
    const ended = n.stopped === n.succeeded ? 'Succeeded' : 'Failed';
    if (terminal && !isStaticPod(pod)) return ended;
    return n.stoppedFinal < n.stopped ? 'Running' : ended;
  }
  return 'Pending';
}

type Termination = NonNullable<ContainerStatus['state']['terminated']>;

const isFinal = (c: Container, pod: Pod, { exitCode, reason }: Termination): boolean =>
  !restartsAfterExit(c, pod, exitCode) && reason !== RESTARTING_ALL;

/** One that ended keeps the pod from nothing: while main containers have not started, they wait themselves. */
function countInit(n: Counts, c: Container, pod: Pod, status: ContainerStatus | undefined): void {
  const isWaiting = status?.state.waiting !== undefined;
  const ended = status?.state.terminated ?? (isWaiting ? status.lastState.terminated : undefined);
  if (ended === undefined) n.pendingInit++;
  else if (ended.exitCode !== 0 && isFinal(c, pod, ended)) n.failedInitFinal++;
}

function countSidecar(n: Counts, status: ContainerStatus | undefined): void {
  if (status === undefined) n.unknown++;
  else if (status.state.running !== undefined) {
    n.running++;
    if (status.started !== true) n.pendingSidecar++;
  } else if (status.state.terminated === undefined && status.lastState.terminated === undefined) {
    n.pendingSidecar++;
    n.waiting++;
  }
}

function countMain(n: Counts, c: Container, pod: Pod, status: ContainerStatus | undefined): void {
  const ended = status?.state.terminated;
  const before = status?.lastState.terminated;
  if (status === undefined) n.unknown++;
  else if (status.state.running !== undefined) n.running++;
  else if (ended === undefined && before === undefined) n.waiting++;
  else {
    n.stopped++;
    if (ended?.exitCode === 0) n.succeeded++;
    const last = ended ?? before;
    if (last !== undefined && isFinal(c, pod, last)) n.stoppedFinal++;
  }
}
