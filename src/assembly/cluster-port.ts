// What the node needs from a cluster, in one shape: `cluster.ts` gives it with an API server, `standalone.ts` without.
import type { EventRecorder, EventType } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import type { KubeObject } from '../core/meta.ts';
import type { ConfigMap, KubeEvent, Node, Secret, Service } from '../core/node.ts';
import type { Pod, PodStatus } from '../core/pod.ts';
import type { ApiConnection } from '../kube/connect.ts';
import type { PodTokens } from '../kube/pod-tokens.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { PodCertificateSource } from '../volumes/plugins/sources.ts';
import type { TrustBundleLister } from '../volumes/plugins/trust-bundles.ts';

/** The objects that pods use. */
export interface PodObjects {
  /** Rejects with `notFound` and the API server's text. */
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap>;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret>;
  /** Undefined until they were read once. */
  services(): readonly Service[] | undefined;
  servicesRead(signal: AbortSignal): Promise<void>;
  /** Rejects when there is no such class. */
  runtimeHandler(className: string, signal: AbortSignal): Promise<string>;
  /** Keeps the objects a pod refers to at hand until `unregister`. */
  register(pod: Pod): void;
  unregister(pod: Pod): void;
  /** Service account tokens on behalf of pods. */
  readonly tokens?: Pick<PodTokens, 'token' | 'identityOf'> | undefined;
  /** Where the gate allows them: the cluster's bundles of trust anchors. */
  readonly trustBundles?: TrustBundleLister | undefined;
  /** Where the gate allows them: certificates that signers in the cluster issue to pods. */
  readonly podCertificates?: PodCertificateSource | undefined;
}

export interface ClusterPort {
  /** Absent without an API server. */
  readonly api?: ApiConnection;
  readonly events: EventRecorder & {
    claim(claim: KubeObject, type: EventType, reason: string, message: string): void;
    volume(volume: KubeObject, type: EventType, reason: string, message: string): void;
    readonly ring: { ringOf(uid: string): readonly KubeEvent[]; all(): readonly KubeEvent[] };
  };
  readonly objects: PodObjects;
  /** Before the first part runs. */
  prepare(signal: AbortSignal): Promise<void>;
  /** Long-lived parts, in start order. */
  readonly parts: readonly Runnable[];
  /** Sources this brings along beside file and HTTP (`api`). */
  readonly sources: readonly string[];
  /** This node as last seen, or as it would be registered. */
  node(): Node | undefined;
  freshNode(signal: AbortSignal): Promise<Node | undefined>;
  nodeIps(): readonly string[];
  /** What the node says about itself changed. */
  nodeChanged(): void;
  /** The status of this pod changed. */
  statusChanged(uid: PodUid): void;
  /** Resolves once the API server's pods were read (at once without one). */
  podsRead(signal: AbortSignal): Promise<void>;
  /** The status shown of a static pod, if its mirror is up to date. */
  mirrorStatus(pod: Pod): PodStatus | undefined;
  /** Makes the mirror of a static pod what it should be, in the background. */
  keepMirror(pod: Pod): void;
  removeMirror(mirror: Pod, signal: AbortSignal): Promise<void>;
}

export type ObjectChange = (kind: 'configMap' | 'secret', namespace: string, name: string) => void;
