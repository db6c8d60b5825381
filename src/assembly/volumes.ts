// The volume manager with all its plugins, fitted to this node.
import { randomUUID } from 'node:crypto';
import type { Node } from '../core/node.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { PluginHandler } from '../plugins/plugin-handler.ts';
import type { NodeResources } from '../resources/node-resources.ts';
import type { StatusStore } from '../status/status-store.ts';
import { createVolumes, type Volumes as CreatedVolumes } from '../volumes/create.ts';
import { CSI_PLUGIN } from '../volumes/csi/csi-layout.ts';
import { VolumeMetrics } from '../volumes/metrics.ts';
import { TrustBundles } from '../volumes/plugins/trust-bundles.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import { buildStorage } from './storage.ts';

export type Volumes = CreatedVolumes & {
  /** Long-lived parts, in start order. */
  readonly parts: readonly Runnable[];
  /** Kinds of plugins that bring volumes. */
  readonly handlers: readonly PluginHandler[];
  /** Our own Node object changed, or was answered by the server. */
  nodeSeen(node: Node): void;
};

export function buildVolumes(
  base: Foundation,
  cluster: ClusterPort,
  resources: NodeResources,
  statuses: StatusStore,
): Volumes {
  const storage = buildStorage(base, cluster, () => created.manager.retry(CSI_PLUGIN));
  const facts = {
    factsOf: (pod: Pod) => ({
      podIPs: (statuses.statusOf(uidOf(pod))?.podIPs ?? []).map((p) => p.ip),
      hostIPs: cluster.nodeIps(),
    }),
    allocatable: () => resources.allocatableList(),
  };
  const created = createVolumes(
    {
      objects: cluster,
      facts,
      ...(cluster.tokens === undefined ? {} : { tokens: cluster.tokens }),
      ...(cluster.trustBundles === undefined
        ? {}
        : { trustBundles: new TrustBundles(cluster.trustBundles, randomUUID()) }),
      ...(cluster.podCertificates === undefined ? {} : { podCertificates: cluster.podCertificates }),
      ...(storage === undefined ? {} : { storage: storage.deps }),
      events: cluster.events,
      clock: base.clock,
      log: base.log,
      metrics: new VolumeMetrics(base.registry),
    },
    { rootDir: base.flags.rootDir },
  );
  return {
    ...created,
    parts: [created.manager, ...(storage?.parts ?? [])],
    handlers: storage?.handlers ?? [],
    nodeSeen: (node) => storage?.attachments.nodeSeen(node),
  };
}
