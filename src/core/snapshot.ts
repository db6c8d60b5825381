// What the runtime says about one pod, after one read: the observed half of every decision. Immutable; a newer read
// replaces it whole. Written only by observe/, read by everybody.
import { named } from '../lib/by-name.ts';
import type { ContainerId, PodUid, SandboxId } from './ids.ts';

export type ObservedState = 'created' | 'running' | 'exited' | 'unknown';

export type ObservedResources = {
  readonly cpuShares?: number;
  readonly cpuQuota?: number;
  readonly cpuPeriod?: number;
  readonly memoryLimitBytes?: number;
};

export type ObservedContainer = {
  readonly id: ContainerId;
  readonly name: string;
  readonly sandboxId: SandboxId;
  readonly attempt: number;
  readonly state: ObservedState;
  /** Nanoseconds since the epoch; 0 when it did not happen yet. */
  readonly createdAt: bigint;
  readonly startedAt: bigint;
  readonly finishedAt: bigint;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  /** What the runtime calls the image (CRI status.image.image). */
  readonly image: string;
  /** CRI status.image_ref, shown as imageID. */
  readonly imageRef: string;
  readonly imageId: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Carry the kubelet's own records over a restart: hash, restart count, hooks, grace periods. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly logPath: string;
  readonly resources?: ObservedResources;
  readonly user?: { readonly uid: number; readonly gid: number; readonly supplementalGroups: readonly number[] };
  /** As the API names it; absent where the runtime does not tell. */
  readonly stopSignal?: string;
  readonly mounts: readonly ObservedMount[];
};

export type ObservedMount = {
  readonly containerPath: string;
  readonly hostPath: string;
  /** What the runtime was told to mount there, of an image volume. */
  readonly image?: string;
};

export type ObservedSandbox = {
  readonly id: SandboxId;
  readonly attempt: number;
  readonly ready: boolean;
  readonly createdAt: bigint;
  readonly hostNetwork: boolean;
  /** Primary first; empty for host network and while there is none. */
  readonly ips: readonly string[];
  readonly runtimeHandler: string;
  /** Of a static pod: where it came from and when it was seen first. */
  readonly annotations?: Readonly<Record<string, string>>;
};

export type PodSnapshot = {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  /** By attempt, then creation, newest first. */
  readonly sandboxes: readonly ObservedSandbox[];
  /** By creation, newest first. */
  readonly containers: readonly ObservedContainer[];
  /** Of the ready sandbox, or what was last known. */
  readonly ips: readonly string[];
  /** Only what lists show: the runtime could never describe this pod in full. Nobody may plan with it. */
  readonly partial?: true;
  /** Grows with every read; a worker that acted at version n must see a later one before it acts again. */
  readonly version: number;
};

/** What somebody made of a pod that the runtime had nothing of: its sandbox as it came up, and the containers started. */
export type MadePod = { readonly sandbox: ObservedSandbox; readonly containerIds: readonly string[] };

/** What whoever asks for a read has just done to the pod, when that says what is left to read. */
export type JustDone = { readonly made: MadePod } | 'containersStopped' | 'stopped';

export const emptySnapshot = (uid: PodUid, name: string, namespace: string, version = 0): PodSnapshot => ({
  uid,
  name,
  namespace,
  sandboxes: [],
  containers: [],
  ips: [],
  version,
});

export const newestOf = (snapshot: PodSnapshot, name: string): ObservedContainer | undefined =>
  named(snapshot.containers, name);

export const hasRunningContainers = (snapshot: PodSnapshot): boolean =>
  snapshot.containers.some((c) => c.state === 'running');
export const hasReadySandbox = (snapshot: PodSnapshot): boolean => snapshot.sandboxes.some((s) => s.ready);
/** Whether the runtime has anything of the pod that would have to be stopped. */
export const isAlive = (snapshot: PodSnapshot | undefined): boolean =>
  snapshot !== undefined && (hasRunningContainers(snapshot) || hasReadySandbox(snapshot));
