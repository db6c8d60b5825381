// The pod conditions the kubelet owns. Pure; transition times are filled in by the store, which knows the last ones.
import { named } from '../lib/by-name.ts';
import { isSidecar, type ContainerStatus, type Pod, type PodCondition, type PodPhase } from '../core/pod.ts';
import { ALL_RESTARTING, mayRestartAll } from '../core/restart-policy.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { WHY_NOT_READY } from './explanation.ts';

export const OWNED_CONDITIONS: readonly string[] = [
  'PodScheduled',
  'Ready',
  'Initialized',
  'ContainersReady',
  'PodResizeInProgress',
  'PodResizePending',
  'PodReadyToStartContainers',
  ALL_RESTARTING,
  WHY_NOT_READY,
];

export type ConditionInput = {
  readonly pod: Pod;
  readonly phase: PodPhase;
  readonly snapshot: PodSnapshot;
  readonly init: readonly ContainerStatus[];
  readonly main: readonly ContainerStatus[];
  /** The last conditions, for those that stay once true, and readiness gates written by others. */
  readonly previous: readonly PodCondition[];
  /** A rule has all containers start over. */
  readonly restartingAll: boolean;
  /** Gate `PodReadyToStartContainersCondition`; on unless said otherwise. */
  readonly tellsSandbox?: boolean;
};

type ConditionVerdict = { readonly status: 'True' | 'False'; readonly reason?: string; readonly message?: string };
const YES: ConditionVerdict = { status: 'True' };
const no = (reason: string, message?: string): ConditionVerdict => ({
  status: 'False',
  reason,
  ...(message === undefined ? {} : { message }),
});

/** In the order upstream lists them: networking, initialised, ready, containers ready, scheduled. */
export function ownedConditions(input: ConditionInput): PodCondition[] {
  const containersReady = containersReadyVerdict(input);
  const sandbox: ConditionVerdict = sandboxIsReady(input.pod, input.snapshot) ? YES : { status: 'False' };
  const all: [string, ConditionVerdict][] = [
    ...(input.tellsSandbox === false ? [] : [['PodReadyToStartContainers', sandbox] as [string, ConditionVerdict]]),
    ['Initialized', initializedVerdict(input)],
    ['Ready', readyVerdict(input, containersReady)],
    ['ContainersReady', containersReady],
    ['PodScheduled', YES],
  ];
  return [...all.map(([type, verdict]) => condition(input.pod, type, verdict)), ...restartingCondition(input)];
}

/** Only for pods that have such a rule, and the only one without a generation. Over when the last container is removed. */
function restartingCondition({ pod, phase, snapshot, restartingAll }: ConditionInput): PodCondition[] {
  if (!mayRestartAll(pod)) return [];
  const names = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((c) => c.name);
  const removing = restartingAll && snapshot.containers.some((c) => names.includes(c.name));
  const verdict = ((): ConditionVerdict => {
    if (phase === 'Succeeded') return no('PodCompleted');
    if (phase === 'Failed') return no('PodFailed');
    if (!removing) return { status: 'False' };
    return {
      status: 'True',
      reason: 'RestartAllContainersStarted',
      message: 'container exited with restart policy rule',
    };
  })();
  return [{ type: ALL_RESTARTING, ...verdict, lastProbeTime: null }];
}

function condition(pod: Pod, type: string, verdict: ConditionVerdict): PodCondition {
  const generation = pod.metadata.generation ?? 0;
  return { type, ...(generation > 0 ? { observedGeneration: generation } : {}), ...verdict, lastProbeTime: null };
}

/** Exactly one ready sandbox, with the right network and (unless it is the host's) an address. */
function sandboxIsReady(pod: Pod, snapshot: PodSnapshot): boolean {
  const ready = snapshot.sandboxes.filter((s) => s.ready);
  const [newest] = snapshot.sandboxes;
  if (ready.length !== 1 || newest === undefined || !newest.ready) return false;
  const hostNetwork = pod.spec.hostNetwork === true;
  return newest.hostNetwork === hostNetwork && (hostNetwork || newest.ips.length > 0);
}

function initializedVerdict({ pod, phase, init, main, previous }: ConditionInput): ConditionVerdict {
  const containers = pod.spec.initContainers ?? [];
  if (phase === 'Succeeded') return { status: 'True', reason: 'PodCompleted' };
  if (containers.length === 0) return YES;
  const unknown: string[] = [];
  const incomplete: string[] = [];
  for (const c of containers) {
    const status = named(init, c.name);
    if (status === undefined) unknown.push(c.name);
    else if (isSidecar(c) ? status.started !== true : !status.ready) incomplete.push(c.name);
  }
  if (unknown.length + incomplete.length === 0 || hasStartedMain(main)) return YES;
  if (previous.some((p) => p.type === 'Initialized' && p.status === 'True')) return YES;
  return no(
    'ContainersNotInitialized',
    listMessage('containers with unknown status', unknown, 'containers with incomplete status', incomplete),
  );
}

const hasStartedMain = (main: readonly ContainerStatus[]): boolean =>
  main.some(
    (s) =>
      s.started === true ||
      s.state.running !== undefined ||
      s.state.terminated !== undefined ||
      s.lastState.terminated !== undefined,
  );

function containersReadyVerdict({ pod, phase, init, main }: ConditionInput): ConditionVerdict {
  if (phase === 'Succeeded') return no('PodCompleted');
  if (phase === 'Failed') return no('PodFailed');
  if (main.length === 0) return no('UnknownContainerStatuses');
  const unknown: string[] = [];
  const unready: string[] = [];
  const check = (name: string, status: ContainerStatus | undefined): void => {
    if (status === undefined) unknown.push(name);
    else if (!status.ready) unready.push(name);
  };
  for (const c of pod.spec.initContainers ?? []) if (isSidecar(c)) check(c.name, named(init, c.name));
  for (const c of pod.spec.containers) check(c.name, named(main, c.name));
  if (unknown.length + unready.length === 0) return YES;
  return no(
    'ContainersNotReady',
    listMessage('containers with unknown status', unknown, 'containers with unready status', unready),
  );
}

const listMessage = (a: string, as: readonly string[], b: string, bs: readonly string[]): string =>
  [as.length > 0 ? `${a}: [${as.join(' ')}]` : '', bs.length > 0 ? `${b}: [${bs.join(' ')}]` : '']
    .filter((t) => t !== '')
    .join(', ');

function readyVerdict({ pod, previous }: ConditionInput, containersReady: ConditionVerdict): ConditionVerdict {
  if (containersReady.status !== 'True') return containersReady;
  const messages: string[] = [];
  for (const { conditionType } of pod.spec.readinessGates ?? []) {
    const gate = (pod.status?.conditions ?? previous).find((c) => c.type === conditionType);
    if (gate === undefined)
      messages.push(`corresponding condition of pod readiness gate "${conditionType}" does not exist.`);
    else if (gate.status !== 'True')
      messages.push(`the status of pod readiness gate "${conditionType}" is not "True", but ${gate.status}`);
  }
  return messages.length === 0 ? YES : no('ReadinessGatesNotReady', messages.join(', '));
}
