// The volume manager with all its plugins, fitted to this node.
import type { Node } from '../core/node.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import { hungChildren } from '../host/mounts/hung-children.ts';
import { randomBytes } from '../lib/clock.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { PluginHandler } from '../plugins/plugin-handler.ts';
import type { NodeResources } from '../resources/node-resources.ts';
import type { StatusStore } from '../status/status-store.ts';
import { createVolumes, type Volumes as CreatedVolumes } from '../volumes/create.ts';
import { createStorage, type Storage } from '../volumes/create-storage.ts';
import { CSI_PLUGIN } from '../volumes/csi/csi-layout.ts';
import { VolumeMetrics } from '../volumes/metrics.ts';
import { TrustBundles } from '../volumes/plugins/trust-bundles.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';

export type Volumes = CreatedVolumes & {
  /** Long-lived parts, in start order. */
  readonly parts: readonly Runnable[];
  /** Kinds of plugins that bring volumes. */
  readonly handlers: readonly PluginHandler[];
  /** Our own Node object changed. */
  nodeSeen(node: Node | undefined): void;
  /** The server's answer to a report of the node's status. */
  reportAnswered(node: Node): void;
};

export function buildVolumes(
  base: Foundation,
  cluster: ClusterPort,
  resources: NodeResources,
  statuses: StatusStore,
): Volumes {
  const { objects, events } = cluster;
  const { tokens, trustBundles, podCertificates } = objects;
  const storage = storageOf(base, cluster, () => created.manager.retry(CSI_PLUGIN));
  showHungChildren(base);
  const facts = {
    factsOf: (pod: Pod) => ({
      podIPs: (statuses.statusOf(uidOf(pod))?.podIPs ?? []).map((p) => p.ip),
      hostIPs: cluster.nodeIps(),
    }),
    allocatable: () => resources.allocatableList(),
  };
  const created = createVolumes(
    {
      objects,
      facts,
      ...(tokens === undefined ? {} : { tokens }),
      ...(trustBundles === undefined
        ? {}
        : { trustBundles: new TrustBundles(trustBundles, randomBytes(base.clock, 16).toString('hex')) }),
      ...(podCertificates === undefined ? {} : { podCertificates }),
      ...(storage === undefined ? {} : { storage: storage.deps }),
      events,
      clock: base.clock,
      log: base.log,
      metrics: new VolumeMetrics(base.registry),
    },
    {
      rootDir: base.flags.rootDir,
      mounterPath: base.flags.experimentalMounterPath,
      flex: { dir: base.config.volumePluginDir },
      quotaMonitoring: base.gates.enabled('LocalStorageCapacityIsolationFSQuotaMonitoring'),
    },
  );
  return {
    ...created,
    parts: [...created.parts, ...(storage?.parts ?? [])],
    handlers: storage?.handlers ?? [],
    nodeSeen: (node) => storage?.attachments.nodeSeen(node),
    reportAnswered: (node) => storage?.attachments.reportAnswered(node),
  };
}

function showHungChildren({ registry, log }: Foundation): void {
  hungChildren.logTo(log.child({ component: 'hung-children' }));
  const help = 'Child processes that do not end after SIGKILL, each in a call into a file system that does not answer';
  registry.collected('kubelet_hung_children', help, 'gauge', () => {
    const { count } = hungChildren;
    return count === 0 ? [] : [[{}, count]];
  });
}

/** Claims and drivers are an API server's. */
const storageOf = (base: Foundation, cluster: ClusterPort, onDriver: () => void): Storage | undefined =>
  cluster.api &&
  createStorage(base, {
    client: cluster.api.main,
    secret: (namespace, name, signal) => cluster.objects.secret(namespace, name, signal),
    tokens: cluster.objects.tokens,
    node: () => cluster.node(),
    onVolumesInUse: () => cluster.nodeChanged(),
    events: cluster.events,
    onDriver,
  });
