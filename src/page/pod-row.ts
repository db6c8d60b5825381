// One pod as a line of a table: the words `kubectl get pods` has for its state, its restarts, its use and its limits. Pure.
import {
  CONFIG_SOURCE,
  isSidecar,
  namespaceOf,
  type ContainerStateTerminated,
  type ContainerStatus,
  type Pod,
} from '../core/pod.ts';
import { podLimits } from '../core/pod-resources.ts';
import { toMilli, toNumber } from '../core/quantity.ts';
import { qosClassOf } from '../core/qos.ts';
import { parseTimeMs } from '../core/time.ts';
import type { Why } from '../why/facts.ts';
import type { PodCounts, PodRow, Tone } from './model.ts';

export type Use = { readonly cpuCores?: number; readonly memoryBytes?: number };

export function podRow(pod: Pod, use: Use | undefined): PodRow {
  const { metadata, status } = pod;
  const statuses = allStatuses(pod);
  const main = status?.containerStatuses ?? [];
  const state = stateOf(pod);
  const last = lastExit(statuses);
  const limits = podLimits(pod);
  const [cpuLimit, memoryLimit] = [limits.get('cpu'), limits.get('memory')];
  const createdAtMs = parseTimeMs(metadata.creationTimestamp ?? status?.startTime);
  return {
    uid: metadata.uid ?? '',
    namespace: namespaceOf(pod),
    name: metadata.name,
    state,
    tone: toneOf(pod, state),
    readyContainers: [...main, ...sidecars(pod)].filter((s) => s.ready).length,
    containers: pod.spec.containers.length + (pod.spec.initContainers ?? []).filter(isSidecar).length,
    restarts: statuses.reduce((sum, s) => sum + s.restartCount, 0),
    source: pod.metadata.annotations?.[CONFIG_SOURCE] ?? 'api',
    qos: qosClassOf(pod),
    ...last,
    ...(createdAtMs > 0 ? { createdAtMs } : {}),
    ...(use?.cpuCores === undefined ? {} : { cpuCores: use.cpuCores }),
    ...(use?.memoryBytes === undefined ? {} : { memoryBytes: use.memoryBytes }),
    ...(cpuLimit === undefined ? {} : { cpuLimitCores: toMilli(cpuLimit) / 1000 }),
    ...(memoryLimit === undefined ? {} : { memoryLimitBytes: toNumber(memoryLimit) }),
    ...(status?.podIP === undefined ? {} : { ip: status.podIP }),
  };
}

export const allStatuses = ({ status }: Pod): readonly ContainerStatus[] => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
  ...(status?.ephemeralContainerStatuses ?? []),
];

const sidecars = (pod: Pod): readonly ContainerStatus[] => {
  const names = new Set((pod.spec.initContainers ?? []).filter(isSidecar).map((c) => c.name));
  return (pod.status?.initContainerStatuses ?? []).filter((s) => names.has(s.name));
};

/** The words of `kubectl get pods`. */
function stateOf(pod: Pod): string {
  const { metadata, status } = pod;
  if (metadata.deletionTimestamp !== undefined && status?.phase !== 'Succeeded' && status?.phase !== 'Failed')
    return 'Terminating';
  if (status?.reason !== undefined && status.reason !== '') return status.reason;
  const init = initState(pod);
  if (init !== undefined) return init;
  const phase = status?.phase ?? 'Pending';
  const states = (status?.containerStatuses ?? []).map((s) => s.state);
  const waiting = states.map((s) => s.waiting?.reason ?? '').findLast((reason) => reason !== '');
  if (waiting !== undefined) return waiting;
  const ended = states.map((s) => s.terminated).findLast((terminated) => terminated !== undefined);
  if (ended === undefined || states.some((s) => s.running !== undefined)) return phase;
  const { reason = '', exitCode, signal } = ended;
  if (reason !== '') return reason;
  return signal === undefined || signal === 0 ? `ExitCode:${exitCode}` : `Signal:${signal}`;
}

function initState({ spec, status }: Pod): string | undefined {
  const containers = spec.initContainers ?? [];
  for (const [i, container] of containers.entries()) {
    const its = status?.initContainerStatuses?.find((s) => s.name === container.name);
    if (its === undefined) continue;
    if (its.state.terminated?.exitCode === 0) continue;
    if (isSidecar(container) && its.started === true) continue;
    if (its.state.terminated !== undefined) return `Init:${its.state.terminated.reason ?? 'Error'}`;
    const waits = its.state.waiting?.reason ?? '';
    if (waits !== '' && waits !== 'PodInitializing') return `Init:${waits}`;
    return `Init:${i}/${containers.length}`;
  }
  return undefined;
}

const BAD = /BackOff|Err|Error|OOMKilled|Failed|Evicted|Invalid|Cannot|Rejected|OutOf|Unexpected|ExitCode|Signal/;

function toneOf(pod: Pod, state: string): Tone {
  if (state === 'Terminating') return 'busy';
  if (state === 'Succeeded' || state === 'Completed') return 'idle';
  if (BAD.test(state) || pod.status?.phase === 'Failed') return 'bad';
  if (isReady(pod)) return 'ok';
  return pod.status?.phase === 'Running' ? 'warn' : 'busy';
}

/** With what is the matter with it; one that starts and keeps failing on the way is no longer just starting. */
export function explainedRow(row: PodRow, { state, sentence, evidence, todo }: Why): PodRow {
  if (state === 'ready' || state === 'ended') return row;
  const tone = state === 'failing' && row.tone === 'busy' && row.state !== 'Terminating' ? 'bad' : row.tone;
  return { ...row, tone, why: { sentence, evidence, ...(todo === '' ? {} : { fix: todo }) } };
}

export const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

function lastExit(statuses: readonly ContainerStatus[]): ReturnType<typeof exitOf> | undefined {
  const ends = statuses.flatMap((s) => [s.lastState.terminated, s.state.terminated]).filter((t) => t !== undefined);
  const bad = ends.filter((t) => t.exitCode !== 0);
  const [newest] = bad.sort((a, b) => parseTimeMs(b.finishedAt) - parseTimeMs(a.finishedAt));
  return newest === undefined ? undefined : exitOf(newest);
}

/** Of a container that was gone when the kubelet looked again, nobody knows when it ended. */
export function exitOf(t: ContainerStateTerminated): { lastExit: string; lastExitMs?: number } {
  const lastExitMs = parseTimeMs(t.finishedAt);
  return { lastExit: exitWords(t), ...(lastExitMs > 0 ? { lastExitMs } : {}) };
}

export const exitWords = (t: { readonly reason?: string; readonly exitCode: number }): string =>
  `${t.reason ?? 'Exited'} (${t.exitCode})`;

export function countPods(rows: readonly PodRow[], max: number): PodCounts {
  const of = (test: (row: PodRow) => boolean): number => rows.filter(test).length;
  return {
    total: rows.length,
    ready: of((r) => r.tone === 'ok'),
    starting: of((r) => r.tone === 'busy' && r.state !== 'Terminating'),
    notReady: of((r) => r.tone === 'warn' || r.tone === 'bad'),
    stopping: of((r) => r.state === 'Terminating'),
    ended: of((r) => r.tone === 'idle'),
    max,
  };
}
