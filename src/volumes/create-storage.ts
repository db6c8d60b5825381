// Fits persistent storage together: claims, CSI drivers and attached volumes, as an API server has them.
import type { Environment } from '../config/environment.ts';
import type { Secret } from '../core/node.ts';
import { namespaceOf } from '../core/pod.ts';
import type { CsiDriver } from '../core/storage.ts';
import type { KubeClient } from '../kube/client.ts';
import { Reflector } from '../kube/reflector.ts';
import { CSI_DRIVERS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS } from '../kube/resources.ts';
import { notFound } from '../lib/errors.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { PluginHandler } from '../plugins/plugin-handler.ts';
import { Attachments } from './attachments.ts';
import { Expander, type ExpanderDeps } from './claims/expander.ts';
import type { StorageDeps } from './create.ts';
import { CsiDrivers } from './csi/csi-drivers.ts';
import { CsiMetrics } from './csi/csi-metrics.ts';
import type { CsiObjects } from './csi/csi-objects.ts';
import { LimitUpdates } from './csi/limit-updates.ts';
import type { PersistentVolumeEvents } from './mount-messages.ts';
import { CsiNodeInfo } from './csi/node-info.ts';

export type Storage = {
  /** For the volume manager. */
  readonly deps: StorageDeps;
  readonly attachments: Attachments;
  readonly handlers: readonly PluginHandler[];
  readonly parts: readonly Runnable[];
};

export type CreateStorageDeps = Pick<StorageDeps, 'node' | 'onVolumesInUse'> & {
  readonly client: KubeClient;
  readonly secret: (namespace: string, name: string, signal: AbortSignal) => Promise<Secret>;
  /** Tokens that CSI drivers ask for on behalf of a pod; absent where there are none. */
  readonly tokens: { token: CsiObjects['token'] } | undefined;
  readonly events: ExpanderDeps['events'] & PersistentVolumeEvents;
  /** A CSI driver came or went. */
  readonly onDriver: () => void;
};

export function createStorage(env: Environment, deps: CreateStorageDeps): Storage {
  const { clock, nodeName, registry } = env;
  const { client, events, node, onDriver, onVolumesInUse } = deps;
  const log = env.log.child({ component: 'csi' });
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
  watched.subscribe(() => {
    limits.changed();
    // What a driver needs may be another thing now: whether it is attached, for one.
    onDriver();
  });
  const attachments = new Attachments();
  const objects = csiObjects(watched, deps);
  return {
    deps: {
      nodeName,
      attachments,
      node,
      onVolumesInUse,
      volumeEvents: events,
      controllerAttaches: env.config.enableControllerAttachDetach,
      claims: {
        claim: (namespace, name, signal) => client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, signal),
        volume: (name, signal) => client.get(PERSISTENT_VOLUMES, { name }, signal),
      },
      expander: new Expander({
        patchClaim: ({ metadata: { name, namespace = 'default' } }, patch, signal) =>
          client.patch(PERSISTENT_VOLUME_CLAIMS, { namespace, name, subresource: 'status' }, patch, signal),
        events,
        clock,
        log,
      }),
      csi: { drivers, objects, gates: env.gates },
    },
    attachments,
    handlers: [drivers],
    parts: [watched, drivers, limits],
  };
}

const csiObjects = (
  watched: Reflector<CsiDriver>,
  { client, secret, tokens }: Pick<CreateStorageDeps, 'client' | 'secret' | 'tokens'>,
): CsiObjects => ({
  driversRead: (signal) => watched.whenSynced(signal),
  driver: (name) => watched.store.byName(undefined, name),
  attachment: (name, signal) => client.get(VOLUME_ATTACHMENTS, { name }, signal),
  secret,
  token: (pod, request, signal) => tokens?.token(pod, request, signal) ?? notFound(`no tokens in ${namespaceOf(pod)}`),
});
