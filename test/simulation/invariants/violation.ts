// What an invariant looks at, and what it says when it does not hold.
import type { Pod } from '../../../src/core/pod.ts';
import type { FakeContainer, FakeSandbox } from '../../fakes/fake-state.ts';
import type { Fate } from '../workload/pods.ts';
import type { Claims } from '../world/claims.ts';
import type { CsiDriver } from '../world/csi-driver.ts';
import type { BlockView } from './block-volumes.ts';

export type Violation = { readonly invariant: string; readonly atMs: number; readonly text: string };

/** A pod as the cluster has it, with what the runtime has of it. */
export type SeenPod = {
  readonly uid: string;
  readonly pod: Pod;
  readonly fate: Fate;
  readonly kind: string;
  readonly isDeleting: boolean;
  readonly hasEnded: boolean;
};

export type View = {
  /** Pods of the API server that are not copies of static ones. */
  readonly pods: ReadonlyMap<string, SeenPod>;
  /** Names of the pods that manifests on the node ask for; `broken` ones ask for nothing certain. */
  readonly manifests: ReadonlyMap<string, 'good' | 'broken'>;
  readonly running: readonly FakeContainer[];
  readonly containers: readonly FakeContainer[];
  readonly sandboxes: readonly FakeSandbox[];
  readonly mounts: readonly string[];
  /** UIDs that have a directory, a cgroup, a log directory. */
  readonly directories: ReadonlySet<string>;
  readonly cgroups: ReadonlySet<string>;
  readonly logs: ReadonlySet<string>;
  /** The first word of a volume's file; undefined when it is not there. */
  readonly fileOf: (uid: string, path: string) => string | undefined;
  readonly configValue: string;
  readonly leaseVersion: string;
  readonly isNodeReady: boolean;
  /** Whether the node takes new pods: as its object says, and as somebody said last. */
  readonly cordon: { readonly isSet: boolean; readonly isWanted: boolean };
  readonly pendingEvents: number;
  readonly openFiles: number;
  readonly requestsLastMinute: number;
  /** Of them, lists and watches. */
  readonly listsLastMinute: number;
  /** Where the world has CSI volumes. */
  readonly csi: Pick<CsiDriver, 'published' | 'publishedOf' | 'staged'> | undefined;
  /** Where the world has claimed devices. */
  readonly claims: Pick<Claims, 'drivers' | 'known' | 'holders' | 'isPrepared' | 'forgotten'> | undefined;
  /** Where it has volumes that are devices, and volumes that grow. */
  readonly block: BlockView | undefined;
  /** Whether what `key` names has been so for longer than this, counted in calm time. Asked at every look while it is so. */
  readonly overdue: (key: string, boundMs: number) => boolean;
};

export type Invariant = (view: View) => readonly string[];

export const uidOf = (container: { readonly config: { readonly labels: Record<string, string> } }): string =>
  container.config.labels['io.kubernetes.pod.uid'] ?? '';
export const podNameOf = (container: { readonly config: { readonly labels: Record<string, string> } }): string =>
  container.config.labels['io.kubernetes.pod.name'] ?? '';
export const containerNameOf = (container: FakeContainer): string =>
  container.config.labels['io.kubernetes.container.name'] ?? '';

export const SECOND = 1000;
export const MINUTE = 60_000;
