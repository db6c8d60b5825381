// CRI messages of one pod → PodSnapshot. Pure.
import { isIP } from 'node:net';
import {
  ContainerState,
  NamespaceMode,
  PodSandboxState,
  Signal,
  type ContainerResources,
  type ContainerStatus,
  type PodSandboxStatus,
} from '../cri/gen/cri.ts';
import { containerId, sandboxId, type PodUid } from '../core/ids.ts';
import { CONFIG_SEEN, CONFIG_SOURCE } from '../core/pod.ts';
import { CONTAINER_NAME } from '../core/runtime-labels.ts';
import type {
  ObservedContainer,
  ObservedResources,
  ObservedSandbox,
  ObservedState,
  PodSnapshot,
} from '../core/snapshot.ts';

const STATES: Readonly<Record<ContainerState, ObservedState>> = {
  [ContainerState.CONTAINER_CREATED]: 'created',
  [ContainerState.CONTAINER_RUNNING]: 'running',
  [ContainerState.CONTAINER_EXITED]: 'exited',
  [ContainerState.CONTAINER_UNKNOWN]: 'unknown',
};

/** A state this version of the CRI does not know counts as unknown. */
export const observedState = (state: ContainerState): ObservedState => STATES[state] ?? 'unknown';

export function observedContainer(status: ContainerStatus, sandbox: string): ObservedContainer {
  const resources = observedResources(status.resources);
  const user = status.user?.linux;
  return {
    id: containerId(status.id),
    name: status.labels[CONTAINER_NAME] ?? status.metadata?.name ?? '',
    sandboxId: sandboxId(sandbox),
    attempt: status.metadata?.attempt ?? 0,
    state: observedState(status.state),
    createdAt: status.createdAt,
    startedAt: status.startedAt,
    finishedAt: status.finishedAt,
    exitCode: status.exitCode,
    reason: status.reason,
    message: status.message,
    image: status.image?.image ?? '',
    imageRef: status.imageRef,
    imageId: status.imageId,
    labels: status.labels,
    annotations: status.annotations,
    logPath: status.logPath,
    ...(resources === undefined ? {} : { resources }),
    ...(user === undefined
      ? {}
      : { user: { uid: user.uid, gid: user.gid, supplementalGroups: user.supplementalGroups } }),
    ...observedSignal(status.stopSignal),
    mounts: status.mounts.map(({ containerPath, hostPath, image }) => ({
      containerPath,
      hostPath,
      ...(image?.image ? { image: image.image } : {}),
    })),
  };
}

const SIGNAL_NAMES = new Map<number, string>(Object.entries(Signal).map(([name, value]) => [value, name]));

function observedSignal(signal: Signal): Pick<ObservedContainer, 'stopSignal'> {
  const name = signal === Signal.RUNTIME_DEFAULT ? undefined : SIGNAL_NAMES.get(signal);
  return name === undefined ? {} : { stopSignal: name.replace('PLUS', '+').replace('MINUS', '-') };
}

/** Runtimes report 0 for what is not set. */
function observedResources(resources: ContainerResources | undefined): ObservedResources | undefined {
  const linux = resources?.linux;
  if (linux === undefined) return undefined;
  return {
    ...(linux.cpuShares > 0 ? { cpuShares: linux.cpuShares } : {}),
    ...(linux.cpuQuota === 0 ? {} : { cpuQuota: linux.cpuQuota }),
    ...(linux.cpuPeriod > 0 ? { cpuPeriod: linux.cpuPeriod } : {}),
    ...(linux.memoryLimitInBytes > 0 ? { memoryLimitBytes: linux.memoryLimitInBytes } : {}),
  };
}

export function observedSandbox(status: PodSandboxStatus): ObservedSandbox {
  const ready = status.state === PodSandboxState.SANDBOX_READY;
  const hostNetwork = status.linux?.namespaces?.options?.network === NamespaceMode.NODE;
  return {
    id: sandboxId(status.id),
    attempt: status.metadata?.attempt ?? 0,
    ready,
    createdAt: status.createdAt,
    hostNetwork,
    ips: ready && !hostNetwork ? sandboxIps(status) : [],
    runtimeHandler: status.runtimeHandler,
    ...staticMarks(status.annotations),
  };
}

const STATIC_SOURCES: readonly (string | undefined)[] = ['file', 'http'];

const staticMarks = ({
  [CONFIG_SOURCE]: source,
  [CONFIG_SEEN]: seen,
}: Readonly<Record<string, string>>): Pick<ObservedSandbox, 'annotations'> =>
  source === undefined || !STATIC_SOURCES.includes(source)
    ? {}
    : { annotations: { [CONFIG_SOURCE]: source, [CONFIG_SEEN]: seen ?? '' } };

/** One address that is none makes them all unbelievable. */
function sandboxIps(status: PodSandboxStatus): readonly string[] {
  const primary = status.network?.ip ?? '';
  if (primary === '') return [];
  const all = [primary, ...(status.network?.additionalIps ?? []).map((p) => p.ip)];
  return all.every((ip) => isIP(ip) !== 0) ? all : [];
}

type Made = { readonly attempt: number; readonly createdAt: bigint };

/** Attempts only ever grow; the clock that wrote the times may have been set back between two of them. */
const latestAttemptFirst = (a: Made, b: Made): number =>
  b.attempt - a.attempt || (a.createdAt === b.createdAt ? 0 : a.createdAt < b.createdAt ? 1 : -1);

export type PodRead = {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  readonly sandboxes: readonly ObservedSandbox[];
  readonly containers: readonly ObservedContainer[];
};

/** `previousIps` stay while no sandbox is ready: a dying pod keeps showing the address it had. */
export function assembleSnapshot(read: PodRead, previousIps: readonly string[], version: number): PodSnapshot {
  const sandboxes = [...read.sandboxes].sort(latestAttemptFirst);
  const newest = sandboxes[0];
  const ips = sandboxes.some((s) => s.ready) ? (newest?.ips ?? []) : previousIps;
  return { ...read, sandboxes, containers: [...read.containers].sort(latestAttemptFirst), ips, version };
}
