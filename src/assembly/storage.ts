// Persistent storage: claims, CSI drivers and attached volumes, fitted to an API server.
import { namespaceOf } from '../core/pod.ts';
import type { CsiDriver } from '../core/storage.ts';
import { Reflector } from '../kube/reflector.ts';
import { CSI_DRIVERS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS } from '../kube/resources.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { PluginHandler } from '../plugins/plugin-handler.ts';
import { Attachments } from '../volumes/attachments.ts';
import { Expander } from '../volumes/claims/expander.ts';
import type { StorageDeps } from '../volumes/create.ts';
import { CsiDrivers } from '../volumes/csi/csi-drivers.ts';
import { CsiMetrics } from '../volumes/csi/csi-metrics.ts';
import type { CsiObjects } from '../volumes/csi/csi-objects.ts';
import { LimitUpdates } from '../volumes/csi/limit-updates.ts';
import { CsiNodeInfo } from '../volumes/csi/node-info.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';

export type Storage = {
  /** For the volume manager. */
  readonly deps: StorageDeps;
  readonly attachments: Attachments;
  readonly handlers: readonly PluginHandler[];
  readonly parts: readonly Runnable[];
};

/** `onDriver`: a CSI driver came or went. */
export function buildStorage(base: Foundation, cluster: ClusterPort, onDriver: () => void): Storage | undefined {
  const client = cluster.api?.main;
  if (client === undefined) return undefined;
  const { clock, nodeName, registry } = base;
  const log = base.log.child({ component: 'csi' });
  const watched = new Reflector<CsiDriver>({ client, clock, log }, { name: 'csi-driver-watch', resource: CSI_DRIVERS });
  const drivers = new CsiDrivers({
    clock,
    log,
    metrics: new CsiMetrics(registry),
    nodeInfo: new CsiNodeInfo({ client, clock }, { nodeName }),
    onChange: () => {
      limits.changed();
      onDriver();
    },
  });
  const limits = new LimitUpdates({
    drivers,
    periodSeconds: (name) => watched.store.byName(undefined, name)?.spec.nodeAllocatableUpdatePeriodSeconds,
    clock,
    log,
  });
  watched.subscribe(() => limits.changed());
  const attachments = new Attachments();
  const objects: CsiObjects = {
    driversRead: (signal) => watched.whenSynced(signal),
    driver: (name) => watched.store.byName(undefined, name),
    attachment: (name, signal) => client.get(VOLUME_ATTACHMENTS, { name }, signal),
    secret: (namespace, name, signal) => cluster.secret(namespace, name, signal),
    token: (pod, request, signal) => cluster.driverToken?.(pod, request, signal) ?? noTokens(namespaceOf(pod)),
  };
  return {
    deps: {
      nodeName,
      attachments,
      node: () => cluster.node(),
      onVolumesInUse: () => cluster.nodeChanged(),
      claims: {
        claim: (namespace, name, signal) => client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, signal),
        volume: (name, signal) => client.get(PERSISTENT_VOLUMES, { name }, signal),
      },
      expander: new Expander({
        patchClaim: ({ metadata: { name, namespace = 'default' } }, patch, signal) =>
          client.patch(PERSISTENT_VOLUME_CLAIMS, { namespace, name, subresource: 'status' }, patch, signal),
        events: cluster.events,
        clock,
        log,
      }),
      csi: { drivers, objects },
    },
    attachments,
    handlers: [drivers],
    parts: [watched, drivers, limits],
  };
}

const noTokens = (namespace: string): Promise<never> =>
  Promise.reject(new KubeletError('unimplemented', `no service account tokens in ${namespace}`));
