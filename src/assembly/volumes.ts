// The volume manager with all its plugins, fitted to this node.
import { randomUUID } from 'node:crypto';
import { uidOf, type Pod } from '../core/pod.ts';
import type { NodeResources } from '../resources/node-resources.ts';
import type { StatusStore } from '../status/status-store.ts';
import { createVolumes, type Volumes } from '../volumes/create.ts';
import { VolumeMetrics } from '../volumes/metrics.ts';
import { TrustBundles } from '../volumes/plugins/trust-bundles.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';

export type { Volumes } from '../volumes/create.ts';

export function buildVolumes(
  base: Foundation,
  cluster: ClusterPort,
  resources: NodeResources,
  statuses: StatusStore,
): Volumes {
  const facts = {
    factsOf: (pod: Pod) => ({
      podIPs: (statuses.statusOf(uidOf(pod))?.podIPs ?? []).map((p) => p.ip),
      hostIPs: cluster.nodeIps(),
    }),
    allocatable: () => resources.allocatableList(),
  };
  return createVolumes(
    {
      objects: cluster,
      facts,
      ...(cluster.tokens === undefined ? {} : { tokens: cluster.tokens }),
      ...(cluster.trustBundles === undefined
        ? {}
        : { trustBundles: new TrustBundles(cluster.trustBundles, randomUUID()) }),
      ...(cluster.podCertificates === undefined ? {} : { podCertificates: cluster.podCertificates }),
      events: cluster.events,
      clock: base.clock,
      log: base.log,
      metrics: new VolumeMetrics(base.registry),
    },
    { rootDir: base.flags.rootDir },
  );
}
