// The phase of a pod, from its container statuses. Pure.
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
  mainStarted: boolean;
};

const find = (statuses: readonly ContainerStatus[] | undefined, name: string): ContainerStatus | undefined =>
  statuses?.find((s) => s.name === name);

/** `terminal`: every container has been stopped for good, whatever the restart policy says. */
export function phaseOf(
  pod: Pod,
  statuses: { readonly init: readonly ContainerStatus[]; readonly main: readonly ContainerStatus[] },
  terminal: boolean,
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
    mainStarted: false,
  };
  for (const c of pod.spec.initContainers ?? []) {
    const status = find(statuses.init, c.name);
    if (isSidecar(c)) countSidecar(n, status);
    else countInit(n, c, pod, status);
  }
  for (const c of pod.spec.containers) countMain(n, c, pod, find(statuses.main, c.name));
  return decide(n, pod, terminal);
}

function decide(n: Counts, pod: Pod, terminal: boolean): PodPhase {
  if (n.failedInitFinal > 0) return 'Failed';
  if (n.pendingInit > 0 || (n.pendingSidecar > 0 && !n.mainStarted) || n.waiting > 0) return 'Pending';
  if (n.running > 0 && n.unknown === 0) return 'Running';
  if (n.running === 0 && n.stopped > 0 && n.unknown === 0) {
    const ended = n.stopped === n.succeeded ? 'Succeeded' : 'Failed';
    if (terminal && !isStaticPod(pod)) return ended;
    return n.stoppedFinal < n.stopped ? 'Running' : ended;
  }
  return 'Pending';
}

function countInit(n: Counts, c: Container, pod: Pod, status: ContainerStatus | undefined): void {
  const failed = ({ exitCode, reason }: NonNullable<ContainerStatus['state']['terminated']>): void => {
    if (!restartsAfterExit(c, pod, exitCode) && reason !== RESTARTING_ALL) n.failedInitFinal++;
    else n.pendingInit++;
  };
  const ended = status?.state.terminated;
  const before = status?.lastState.terminated;
  if (ended !== undefined) {
    if (ended.exitCode !== 0) failed(ended);
  } else if (status?.state.waiting !== undefined && before !== undefined) {
    if (before.exitCode !== 0) failed(before);
    else n.pendingInit++;
  } else n.pendingInit++;
}

function countSidecar(n: Counts, status: ContainerStatus | undefined): void {
  if (status === undefined) n.pendingSidecar++;
  else if (status.state.running !== undefined) {
    n.running++;
    if (status.started !== true) n.pendingSidecar++;
  } else if (status.state.terminated === undefined && status.lastState.terminated === undefined) {
    n.pendingSidecar++;
    n.waiting++;
  }
}

function countMain(n: Counts, c: Container, pod: Pod, status: ContainerStatus | undefined): void {
  if (status === undefined) {
    n.unknown++;
    return;
  }
  const ended = status.state.terminated;
  if (status.state.running !== undefined || ended !== undefined || status.lastState.terminated !== undefined)
    n.mainStarted = true;
  if (status.state.running !== undefined) n.running++;
  else if (ended !== undefined) {
    n.stopped++;
    if (ended.exitCode === 0) n.succeeded++;
    if (!restartsAfterExit(c, pod, ended.exitCode) && ended.reason !== RESTARTING_ALL) n.stoppedFinal++;
  } else if (status.lastState.terminated !== undefined) n.stopped++;
  else n.waiting++;
}
