// What this folder needs from others, as narrow interfaces. The composition root fits the real things in.
import type { Image, PodSandboxConfig } from '../cri/gen/cri.ts';
import type { PodUid } from '../core/ids.ts';
import type { ConfigMap, Secret, Service } from '../core/node.ts';
import type { Container, Pod, ResourceList, ResourceRequirements } from '../core/pod.ts';
import type { Actuated } from '../core/pod-resources.ts';
import type { ObservedContainer } from '../core/snapshot.ts';
import type { WaitingReason } from '../core/reasons.ts';
import type { Clock } from '../lib/clock.ts';
import type { HeaderFields } from '../lib/http/header-fields.ts';
import type { Logger } from '../lib/logger.ts';
import type { Partially } from '../lib/proto/codec.ts';
import type { ContainerAdditions } from './container-config.ts';
import type { MountedVolumes } from './mounts.ts';
import type { PodValues } from './resize-plan.ts';

export type ImageRequest = {
  readonly pod: Pod;
  /** Where events about it point to; empty for the pod as a whole. */
  readonly fieldPath: string;
  readonly image: string;
  readonly policy: 'Always' | 'Never' | 'IfNotPresent' | undefined;
  readonly pullSecrets: readonly Secret[];
  readonly sandboxConfig: Partially<PodSandboxConfig>;
  readonly runtimeHandler: string;
  /** Called before a registry is asked. */
  readonly onPull?: (() => void) | undefined;
};
export type EnsuredImage = {
  /** What the runtime wants to be told in CreateContainer. */
  readonly imageRef: string;
  /** As ImageStatus showed it; tells whom it runs as. */
  readonly image?: Pick<Image, 'uid' | 'username'> | undefined;
};
/** Makes an image present. Fails with ContainerStartError, which may carry `retryAt` (wall milliseconds). */
export interface ImageEnsurer {
  ensure(request: ImageRequest, signal: AbortSignal): Promise<EnsuredImage>;
}

export interface VolumeProvider {
  /** The pod's volumes that are ready, by name. Image volumes are not among them. */
  mountsOf(uid: PodUid): MountedVolumes;
  /** Makes a sub-path of a volume ready and says where it is bound on the host. */
  prepareSubPath(
    pod: Pod,
    container: Container,
    mountIndex: number,
    subPath: string,
    signal: AbortSignal,
  ): Promise<string>;
}

/** Cgroups, devices and pinned CPUs. What a node does not have may be left out. */
export interface ResourceManager {
  /** The pod's cgroup in the form of the driver in use. */
  cgroupParentOf(pod: Pod): string;
  /** Makes the pod's resource claims ready, before its sandbox. */
  prepare?(pod: Pod, signal: AbortSignal): Promise<void>;
  readonly hooks?: ContainerHooks;
  readonly resize?: ResizeRecords;
}

/** Removes an ended container, with its logs unless they are to be kept. Gone is success. */
export interface ContainerRemover {
  remove(container: ObservedContainer, keepLogs: boolean, signal: AbortSignal): Promise<void>;
}

export interface ContainerHooks {
  preCreate(pod: Pod, container: Container, signal: AbortSignal): Promise<ContainerAdditions>;
  preStart(pod: Pod, container: Container, containerId: string, signal: AbortSignal): Promise<void>;
  /** Whether the pod must not be throttled: its containers own their CPUs. */
  hasExclusiveCpus(pod: Pod): boolean;
  /** Whether this container does. */
  ownsCpus(pod: Pod, container: Container): boolean;
}

/** What running containers really have, and the pod's own cgroup. */
export interface ResizeRecords {
  actuatedOf(uid: PodUid): Actuated;
  setActuated(uid: PodUid, container: string, resources: ResourceRequirements): void;
  /** Of the pod as a whole. */
  setActuatedPod(uid: PodUid, resources: ResourceRequirements): void;
  /** Writes one value of the pod's cgroup; 0 lifts the limit. */
  writePod(pod: Pod, key: keyof PodValues, value: number, signal: AbortSignal): Promise<void>;
  memoryUsageOf(pod: Pod, signal: AbortSignal): Promise<number | undefined>;
}

/** What the cluster and the node say, as last read. */
export interface ClusterView {
  /** Undefined when there is none. */
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap | undefined>;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** Undefined until they were read once. */
  services(): readonly Service[] | undefined;
  /** Resolves when the services were read once, or after a while. */
  servicesRead(signal: AbortSignal): Promise<void>;
  nodeIps(): readonly string[];
  allocatable(): ResourceList;
  /** The handler of a RuntimeClass; rejects when there is no such class. */
  runtimeHandler(className: string, signal: AbortSignal): Promise<string>;
  /** What the runtime can do under a handler. */
  handlerFeatures(handler: string): { readonly userNamespaces: boolean; readonly recursiveReadOnlyMounts: boolean };
}

export type ContainerType = 'container' | 'init_container' | 'ephemeral_container';
export interface RuntimeMetrics {
  podStarting(ownUsers: boolean): void;
  podFailed(ownUsers: boolean): void;
  sandboxRan(handler: string, seconds: number): void;
  sandboxFailed(handler: string): void;
  containerStarting(type: ContainerType): void;
  containerFailed(type: ContainerType, reason: WaitingReason): void;
  /** Of one start of a container: image volumes of its pod, how many of them it mounts, and whether that failed. */
  imageVolumes(requested: number, mounted: number, failed: boolean): void;
  resized(succeeded: boolean, milliseconds: number): void;
  hookFellBackToHttp(): void;
  hookSleepCutShort(): void;
}

/** Sends a lifecycle hook's request; resolves with the body's start whatever the status is. */
export interface HookHttp {
  get(url: URL, headers: HeaderFields, signal: AbortSignal): Promise<string>;
}

export type Infra = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RuntimeMetrics;
  readonly http: HookHttp;
};
