// Observed container instances → API container statuses. Pure.
import { allNamed, named } from '../lib/by-name.ts';
import {
  isSidecar,
  type AllocatedResourceStatus,
  type Container,
  type ContainerKind,
  type ContainerState,
  type ContainerStatus,
  type Pod,
  type VolumeMount,
  type VolumeMountStatus,
} from '../core/pod.ts';
import { absolutePath } from '../core/paths.ts';
import type { Actuated } from '../core/pod-resources.ts';
import { RESTARTING_ALL, restartsAfterExit } from '../core/restart-policy.ts';
import { newestOf, type ObservedContainer, type PodSnapshot } from '../core/snapshot.ts';
import { nanosToApiTime } from '../core/time.ts';
import { containerResources } from './container-resources.ts';

export type StartErrorLookup = (container: string) => { readonly reason: string; readonly message: string } | undefined;

export type ContainerStatusInput = {
  readonly pod: Pod;
  readonly snapshot: PodSnapshot;
  /** The runtime's name in container ids: `containerd://…`. */
  readonly runtimeName: string;
  readonly previous: readonly ContainerStatus[];
  readonly startErrors: StartErrorLookup;
  /** What a container left in its termination message file (or its log); empty for none. */
  readonly terminationMessage: (container: ObservedContainer) => string;
  readonly actuated: Actuated;
  /** How the devices are that a main container has, by those who gave them; undefined for none. */
  readonly deviceHealth?: readonly ((container: Container) => readonly AllocatedResourceStatus[] | undefined)[];
  /** Whether a runtime handler makes read-only mounts so with all that is mounted below; absent: none does. */
  readonly recursiveReadOnly?: (runtimeHandler: string) => boolean;
  /** Statuses tell by which signal containers are stopped (gate `ContainerStopSignals`). */
  readonly stopSignals?: boolean;
  /** Statuses tell which image an image volume has (gate `ImageVolumeWithDigest`). */
  readonly imageDigests?: boolean;
  /** A rule has all containers start over: those not there were removed for it. */
  readonly restartingAll: boolean;
};

const RESTART_COUNT = 'io.kubernetes.container.restartCount';

/** Statuses of one kind of container: main and ephemeral ones sorted by name, init ones in spec order. */
export function containerStatuses(
  kind: ContainerKind,
  containers: readonly Container[],
  input: ContainerStatusInput,
): ContainerStatus[] {
  const statuses = containers.map((container) => {
    const status = withStartError(kind, container, statusOf(kind, container, input), input);
    return kind === 'main' ? withDeviceHealth(status, container, input) : status;
  });
  return kind === 'init' ? statuses : statuses.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function withDeviceHealth(
  status: ContainerStatus,
  container: Container,
  { deviceHealth }: ContainerStatusInput,
): ContainerStatus {
  if (deviceHealth === undefined) return status;
  const { allocatedResourcesStatus: _, ...rest } = status;
  const health = deviceHealth.flatMap((ask) => ask(container) ?? []);
  return health.length === 0 ? rest : { ...rest, allocatedResourcesStatus: health };
}

function statusOf(kind: ContainerKind, container: Container, input: ContainerStatusInput): ContainerStatus {
  const old = named(input.previous, container.name);
  const [newest, before] = allNamed(input.snapshot.containers, container.name);
  if (newest === undefined) return missing(kind, container, old, input);
  const status = fromInstance(kind, container, newest, old, input);
  return before === undefined ? status : { ...status, lastState: stateOf(before, undefined, input) };
}

const waitingDefault = (pod: Pod): ContainerState => ({
  waiting: { reason: (pod.spec.initContainers ?? []).length > 0 ? 'PodInitializing' : 'ContainerCreating' },
});

function missing(
  kind: ContainerKind,
  container: Container,
  old: ContainerStatus | undefined,
  input: ContainerStatusInput,
): ContainerStatus {
  if (input.restartingAll && old !== undefined && old.state.waiting === undefined)
    return removedForRestart(old.state.terminated === undefined ? unseen(kind, container, old, input) : old);
  if (old?.state.terminated !== undefined) return old;
  const status = unseen(kind, container, old, input);
  if (kind === 'init' && !isSidecar(container) && anyMainCreated(input)) {
    const message =
      'Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally';
    return {
      ...status,
      state: { terminated: { exitCode: 0, reason: 'Completed', message, startedAt: null, finishedAt: null } },
    };
  }
  if (old?.state.running === undefined || status.lastState.terminated !== undefined) return status;
  const message = 'The container could not be located when the pod was deleted.  The container used to be Running';
  return {
    ...status,
    lastState: { terminated: madeUpTermination('ContainerStatusUnknown', message) },
    restartCount: status.restartCount + (input.pod.metadata.deletionTimestamp === undefined ? 1 : 0),
  };
}

/** Of a container the runtime does not have only what was said before is known. */
function unseen(
  kind: ContainerKind,
  container: Container,
  old: ContainerStatus | undefined,
  input: ContainerStatusInput,
): ContainerStatus {
  return {
    name: container.name,
    state: waitingDefault(input.pod),
    lastState: old?.lastState ?? {},
    ready: false,
    restartCount: old?.restartCount ?? 0,
    image: container.image ?? '',
    imageID: '',
    ...(kind === 'ephemeral' ? {} : { started: false }),
    ...mountStatuses(container, input),
  };
}

function removedForRestart(status: ContainerStatus): ContainerStatus {
  const message = 'The container is removed because RestartAllContainers in place';
  return {
    ...status,
    state: { waiting: { reason: RESTARTING_ALL, message } },
    lastState: { terminated: madeUpTermination(RESTARTING_ALL, message) },
    restartCount: status.restartCount + 1,
  };
}

/** How a container ended that nobody saw end. */
export const madeUpTermination = (reason: string, message: string): NonNullable<ContainerState['terminated']> => ({
  exitCode: 137,
  reason,
  message,
  startedAt: null,
  finishedAt: null,
});

const anyMainCreated = ({ pod, snapshot }: ContainerStatusInput): boolean =>
  pod.spec.containers.some((c) => newestOf(snapshot, c.name) !== undefined);

function fromInstance(
  kind: ContainerKind,
  container: Container,
  seen: ObservedContainer,
  old: ContainerStatus | undefined,
  input: ContainerStatusInput,
): ContainerStatus {
  const state = stateOf(seen, old, input);
  const recorded = Number(seen.annotations[RESTART_COUNT] ?? 0) || 0;
  const lost = seen.state === 'unknown' && state.terminated !== undefined;
  const id = `${input.runtimeName}://${seen.id}`;
  return {
    name: container.name,
    state,
    lastState: lastStateOf(id, old),
    ready: false,
    restartCount: lost ? (old?.restartCount ?? recorded) + 1 : restartsShown(recorded, state, id, old),
    image: seen.image,
    imageID: seen.imageRef,
    containerID: id,
    ...(kind === 'ephemeral' ? {} : { started: false }),
    ...containerResources(
      container,
      seen,
      input.actuated.containers.get(container.name),
      old?.containerID === id ? old : undefined,
    ),
    ...withDigests(toldMounts(container, old, input), seen, input),
    ...userStatus(seen),
    ...(input.stopSignals === true && seen.stopSignal !== undefined ? { stopSignal: seen.stopSignal } : {}),
  };
}

/** What was said of the end before this one; a second instance in the runtime knows it better. */
function lastStateOf(id: string, old: ContainerStatus | undefined): ContainerState {
  const ended = old?.containerID !== id ? old?.state.terminated : undefined;
  const terminated = ended ?? old?.lastState.terminated;
  return terminated === undefined ? {} : { terminated };
}

/** A start that was cut off may have been shown already, and records may be gone: the count never goes back. */
function restartsShown(recorded: number, state: ContainerState, id: string, old: ContainerStatus | undefined): number {
  if (old === undefined) return recorded;
  const again = state.running !== undefined && old.state.terminated !== undefined && old.containerID !== id;
  return Math.max(recorded, old.restartCount + (again ? 1 : 0));
}

function userStatus({ user }: ObservedContainer): Pick<ContainerStatus, 'user'> {
  if (user === undefined) return {};
  const groups = user.supplementalGroups.length > 0 ? { supplementalGroups: user.supplementalGroups } : {};
  return { user: { linux: { uid: user.uid, gid: user.gid, ...groups } } };
}

function stateOf(
  seen: ObservedContainer,
  old: ContainerStatus | undefined,
  input: ContainerStatusInput,
): ContainerState {
  switch (seen.state) {
    case 'running':
      return runningSince(seen);
    case 'created':
      return { waiting: {} };
    case 'exited':
      return { terminated: terminationOf(seen, input) };
    case 'unknown':
      if (old?.state.running === undefined) return { waiting: {} };
      return {
        terminated: madeUpTermination(
          input.restartingAll ? RESTARTING_ALL : 'ContainerStatusUnknown',
          'The container could not be located when the pod was terminated',
        ),
      };
    default:
      return seen.state satisfies never;
  }
}

/** Of containers that run: one that was observed does not change, and its status is made every minute. */
const running = new WeakMap<ObservedContainer, ContainerState>();

function runningSince(seen: ObservedContainer): ContainerState {
  let state = running.get(seen);
  if (state === undefined) running.set(seen, (state = { running: { startedAt: nanosToApiTime(seen.startedAt) } }));
  return state;
}

function terminationOf(
  seen: ObservedContainer,
  input: ContainerStatusInput,
): NonNullable<ContainerState['terminated']> {
  const left = input.terminationMessage(seen);
  const message = seen.message !== '' && left !== '' ? `${seen.message}: ${left}` : seen.message + left;
  return {
    exitCode: seen.exitCode,
    ...(seen.reason === '' ? {} : { reason: seen.reason }),
    ...(message === '' ? {} : { message }),
    startedAt: nanosToApiTime(seen.startedAt),
    finishedAt: nanosToApiTime(seen.finishedAt),
    containerID: `${input.runtimeName}://${seen.id}`,
  };
}

/** A container that will be started again but could not be, shows why instead of how it ended. */
function withStartError(
  kind: ContainerKind,
  container: Container,
  status: ContainerStatus,
  input: ContainerStatusInput,
): ContainerStatus {
  const seen = newestOf(input.snapshot, container.name);
  // Also of a sidecar, although that is started again.
  if (kind === 'init' && seen?.state === 'exited' && seen.exitCode === 0) return status;
  if (!willStart(container, input.pod, seen)) return status;
  const error = input.startErrors(container.name);
  if (error === undefined) return status;
  const moved = status.state.terminated === undefined ? {} : { lastState: { terminated: status.state.terminated } };
  const message = error.message === '' ? {} : { message: error.message };
  return { ...status, ...moved, state: { waiting: { reason: error.reason, ...message } } };
}

function willStart(container: Container, pod: Pod, seen: ObservedContainer | undefined): boolean {
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  if (seen === undefined || seen.state === 'unknown' || seen.state === 'created') return true;
  return seen.state === 'exited' && restartsAfterExit(container, pod, seen.exitCode);
}

/** What was told of a container that was made stays. Before that its handler may not have been known. */
function toldMounts(
  container: Container,
  old: ContainerStatus | undefined,
  input: ContainerStatusInput,
): Pick<ContainerStatus, 'volumeMounts'> {
  const isTold = old?.containerID !== undefined && old.volumeMounts !== undefined;
  return isTold ? { volumeMounts: old.volumeMounts } : mountStatuses(container, input);
}

type Mounts = Pick<ContainerStatus, 'volumeMounts'>;

/** The image of each image volume, which may be another one after every start. */
function withDigests({ volumeMounts }: Mounts, seen: ObservedContainer, input: ContainerStatusInput): Mounts {
  if (volumeMounts === undefined) return {};
  if (input.imageDigests !== true) return { volumeMounts };
  const images = (input.pod.spec.volumes ?? []).filter((v) => v.image !== undefined).map((v) => v.name);
  return {
    volumeMounts: volumeMounts.map((mount) => {
      if (!images.includes(mount.name)) return mount;
      const paths = [mount.mountPath, absolutePath(mount.mountPath)];
      const imageRef = seen.mounts.find((m) => m.image !== undefined && paths.includes(m.containerPath))?.image;
      return imageRef === undefined ? mount : { ...mount, volumeStatus: { image: { imageRef } } };
    }),
  };
}

function mountStatuses(container: Container, input: ContainerStatusInput): Pick<ContainerStatus, 'volumeMounts'> {
  const mounts = container.volumeMounts ?? [];
  if (mounts.length === 0) return {};
  const handler = input.snapshot.sandboxes[0]?.runtimeHandler ?? (input.pod.spec.runtimeClassName ? undefined : '');
  const supported = handler !== undefined && input.recursiveReadOnly?.(handler) === true;
  return {
    volumeMounts: mounts.map((m): VolumeMountStatus => {
      const recursiveReadOnly = supported && wantsRecursive(m) ? 'Enabled' : 'Disabled';
      const readOnly = m.readOnly === true ? { readOnly: true, recursiveReadOnly } : {};
      return { name: m.name, mountPath: m.mountPath, ...readOnly };
    }),
  };
}

const wantsRecursive = ({ recursiveReadOnly, mountPropagation = 'None' }: VolumeMount): boolean =>
  (recursiveReadOnly === 'Enabled' || recursiveReadOnly === 'IfPossible') && mountPropagation === 'None';
