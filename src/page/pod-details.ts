// Everything about one pod that its own page shows, from the pod, its status and what was observed. Pure.
import {
  containersOf,
  isSidecar,
  type Container,
  type ContainerKind,
  type ContainerStatus,
  type Pod,
  type Probe,
  type Volume,
} from '../core/pod.ts';
import { bytesOf, canonicalQuantity, milliOf } from '../core/quantity.ts';
import type { KubeEvent } from '../core/node.ts';
import { newestOf, type PodSnapshot } from '../core/snapshot.ts';
import { parseTimeMs } from '../core/time.ts';
import type {
  ComparedView,
  ConditionView,
  ContainerView,
  EventView,
  PodView,
  ProbeView,
  Tone,
  VolumeView,
} from './model.ts';
import { allStatuses, exitOf, exitWords, type Use } from './pod-row.ts';

export const conditionViews = (
  conditions: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason?: string;
    readonly message?: string;
    readonly lastTransitionTime?: string | null;
  }[],
  goodWhen: (type: string) => 'True' | 'False',
): readonly ConditionView[] =>
  conditions.map(({ type, status, reason, message, lastTransitionTime }) => ({
    type,
    status,
    tone: status === goodWhen(type) ? 'ok' : status === 'Unknown' ? 'warn' : 'bad',
    ...(reason === undefined || reason === '' ? {} : { reason }),
    ...(message === undefined || message === '' ? {} : { message }),
    ...(parseTimeMs(lastTransitionTime) > 0 ? { sinceMs: parseTimeMs(lastTransitionTime) } : {}),
  }));

const GOOD_WHEN_FALSE = ['DisruptionTarget', 'PodResizeInProgress', 'PodResizePending', 'kubelet-ts/WhyNotReady'];

/** Of the conditions of a pod: what is as it should be. */
export const goodOfPod = (type: string): 'True' | 'False' => (GOOD_WHEN_FALSE.includes(type) ? 'False' : 'True');

export function containerViews(pod: Pod, useOf: (name: string) => Use | undefined): readonly ContainerView[] {
  const statuses = new Map(allStatuses(pod).map((s) => [s.name, s]));
  return [...containersOf(pod)].map(({ kind, container }) =>
    containerView(kind, container, statuses.get(container.name), useOf(container.name)),
  );
}

function containerView(
  kind: ContainerKind,
  container: Container,
  status: ContainerStatus | undefined,
  use: Use | undefined,
): ContainerView {
  const { limits } = container.resources ?? {};
  const ended = status?.state.terminated;
  const last = status?.lastState.terminated;
  const startedAtMs = parseTimeMs(status?.state.running?.startedAt);
  return {
    name: container.name,
    kind: kind === 'init' && isSidecar(container) ? 'sidecar' : kind,
    image: container.image ?? '',
    ...stateWords(status),
    ready: status?.ready === true,
    restarts: status?.restartCount ?? 0,
    hasLogs: (status?.containerID ?? '') !== '' || last !== undefined,
    ...(status?.imageID ? { imageId: status.imageID } : {}),
    ...(status?.containerID ? { id: status.containerID } : {}),
    ...(startedAtMs > 0 ? { startedAtMs } : {}),
    ...(ended === undefined ? {} : { exit: exitWords(ended) }),
    ...(last === undefined ? {} : exitOf(last)),
    ...(use?.cpuCores === undefined ? {} : { cpuCores: use.cpuCores }),
    ...(use?.memoryBytes === undefined ? {} : { memoryBytes: use.memoryBytes }),
    ...(limits?.['cpu'] === undefined ? {} : { cpuLimitCores: milliOf(limits['cpu']) / 1000 }),
    ...(limits?.['memory'] === undefined ? {} : { memoryLimitBytes: bytesOf(limits['memory']) }),
  };
}

function stateWords(status: ContainerStatus | undefined): { state: string; tone: Tone; message?: string } {
  if (status === undefined) return { state: 'Not created', tone: 'idle' };
  const { running, terminated, waiting } = status.state;
  if (running !== undefined) return { state: 'Running', tone: status.ready ? 'ok' : 'warn' };
  const message = (terminated ?? waiting)?.message;
  const words = message === undefined || message === '' ? {} : { message };
  if (terminated !== undefined)
    return { state: terminated.reason ?? 'Ended', tone: terminated.exitCode === 0 ? 'idle' : 'bad', ...words };
  const reason = waiting?.reason ?? 'Waiting';
  return { state: reason, tone: /BackOff|Err/.test(reason) ? 'bad' : 'busy', ...words };
}

/** `GET http://:8080/healthz`, in one line. */
export function probeWords({ httpGet, tcpSocket, grpc, exec }: Probe): string {
  if (httpGet !== undefined)
    return `GET ${(httpGet.scheme ?? 'HTTP').toLowerCase()}://${httpGet.host ?? ''}:${httpGet.port}${httpGet.path ?? '/'}`;
  if (tcpSocket !== undefined) return `connect to ${tcpSocket.host ?? ''}:${tcpSocket.port}`;
  if (grpc !== undefined) return `gRPC health :${grpc.port} ${grpc.service ?? ''}`.trim();
  return `exec ${(exec?.command ?? []).join(' ')}`.slice(0, 200);
}

const PROBES = [
  ['startup', 'startupProbe'],
  ['readiness', 'readinessProbe'],
  ['liveness', 'livenessProbe'],
] as const;
const DEFAULT_PERIOD_SECONDS = 10;

export const probeViews = (
  pod: Pod,
  runsOf: (container: string, type: ProbeView['type']) => ProbeView['runs'],
): readonly ProbeView[] =>
  [...containersOf(pod)].flatMap(({ container }) =>
    PROBES.flatMap(([type, field]): ProbeView[] => {
      const probe = container[field];
      if (probe === undefined) return [];
      return [
        {
          container: container.name,
          type,
          what: probeWords(probe),
          periodSeconds: probe.periodSeconds ?? DEFAULT_PERIOD_SECONDS,
          runs: runsOf(container.name, type),
        },
      ];
    }),
  );

export type VolumeFacts = {
  readonly mounted: ReadonlySet<string>;
  /** What each volume that is not mounted waits for. */
  readonly waiting: ReadonlyMap<string, string>;
  readonly use: ReadonlyMap<string, { readonly usedBytes?: number; readonly capacityBytes?: number }>;
};

export const volumeViews = (pod: Pod, facts: VolumeFacts): readonly VolumeView[] =>
  (pod.spec.volumes ?? []).map((volume) => {
    const waitsFor = facts.waiting.get(volume.name);
    const use = facts.use.get(volume.name);
    return {
      name: volume.name,
      kind: kindOf(volume),
      tone: waitsFor !== undefined ? 'busy' : facts.mounted.has(volume.name) ? 'ok' : 'idle',
      ...(waitsFor === undefined ? {} : { waitsFor }),
      ...(use?.usedBytes === undefined ? {} : { usedBytes: use.usedBytes }),
      ...(use?.capacityBytes === undefined ? {} : { capacityBytes: use.capacityBytes }),
    };
  });

/** The kind and what it refers to: `secret db-login`. Names only, never content. */
function kindOf(volume: Volume): string {
  const [kind = 'unknown', source] = Object.entries(volume).find(([key]) => key !== 'name') ?? [];
  const { name, secretName, claimName, path, driver } = (source ?? {}) as Readonly<Record<string, unknown>>;
  const of = [name, secretName, claimName, path, driver].find((v): v is string => typeof v === 'string' && v !== '');
  return of === undefined ? kind : `${kind} ${of}`;
}

export const eventViews = (events: readonly KubeEvent[]): readonly EventView[] =>
  events
    .map((e) => ({
      atMs: parseTimeMs(e.lastTimestamp ?? e.firstTimestamp),
      type: e.type ?? 'Normal',
      reason: e.reason ?? '',
      message: e.message ?? '',
      count: e.count ?? 1,
      ...(e.involvedObject.fieldPath === undefined ? {} : { about: e.involvedObject.fieldPath }),
    }))
    .reverse();

/** What the spec says of containers beside what runs. */
export function compared(pod: Pod, snapshot: PodSnapshot | undefined): PodView['compared'] {
  const found: ComparedView[] = [];
  const statuses = new Map(allStatuses(pod).map((s) => [s.name, s]));
  const names = new Set<string>();
  for (const { container } of containersOf(pod)) {
    names.add(container.name);
    const status = statuses.get(container.name);
    if (status?.state.running === undefined) continue;
    const seen = snapshot === undefined ? undefined : newestOf(snapshot, container.name);
    found.push(...comparedContainer(container, status, seen?.imageRef ?? ''));
  }
  for (const c of snapshot?.containers ?? [])
    if (c.state === 'running' && !names.has(c.name))
      found.push({
        what: `${c.name}: container`,
        wanted: 'not in the spec',
        running: c.id.slice(0, SHORT_ID),
        same: false,
      });
  return found.toSorted((a, b) => Number(a.same) - Number(b.same));
}

const SHORT_ID = 12;

function comparedContainer(container: Container, status: ContainerStatus, imageRef: string): readonly ComparedView[] {
  const { name, image: wanted = '' } = container;
  const resources = (['requests', 'limits'] as const).flatMap((kind) =>
    Object.entries(container.resources?.[kind] ?? {}).flatMap(([resource, amount]): ComparedView[] => {
      const running = status.resources?.[kind]?.[resource];
      if (running === undefined) return [];
      const what = `${name}: ${resource} ${kind.slice(0, -1)}`;
      return [{ what, wanted: amount, running, same: canonicalQuantity(running) === canonicalQuantity(amount) }];
    }),
  );
  const same = status.image === '' || sameImage(wanted, status.image, imageRef);
  return [{ what: `${name}: image`, wanted, running: status.image, same }, ...resources];
}

/** `nginx`, `docker.io/library/nginx:latest` and `nginx@sha256:…` are one image; only different names are told. */
function sameImage(wanted: string, shown: string, ref: string): boolean {
  const tail = (image: string): string => {
    const name = image.split('/').at(-1) ?? image;
    return name.includes(':') ? name : `${name}:latest`;
  };
  if (shown.startsWith('sha256:')) return true;
  return wanted.includes('@')
    ? ref.includes(wanted.split('@')[1] ?? '') || shown === wanted
    : tail(wanted) === tail(shown);
}
