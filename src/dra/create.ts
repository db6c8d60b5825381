// Fits the parts of this folder together: the drivers, the claims of pods, and what vanished drivers published.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { hasRunningContainers, type PodSnapshot } from '../core/snapshot.ts';
import { DraHook } from './dra-hook.ts';
import { DraManager } from './dra-manager.ts';
import { Drivers } from './drivers.ts';
import { HealthCache } from './health.ts';
import { draMetrics } from './metrics.ts';
import { SliceCleaner } from './resource-slices.ts';
import type { KubeClient } from '../kube/client.ts';
import { RESOURCE_CLAIMS, RESOURCE_SLICES } from '../kube/resources.ts';
import { aborted } from '../lib/abort.ts';
import { notFound } from '../lib/errors.ts';
import type { Runnable } from '../lib/supervise.ts';

export type Dra = {
  readonly manager: DraManager;
  readonly hook: DraHook;
  /** For plugins found in the plugin folder. */
  readonly pluginHandler: Drivers['handler'];
  readonly parts: readonly Runnable[];
};

type Client = Pick<KubeClient, 'get' | 'delete'>;

export type DraDeps = {
  /** Absent without an API server: then there are no claims. */
  readonly client: Client | undefined;
  readonly alive: () => readonly Pod[];
  readonly sourcesReady: () => boolean;
  readonly observed: { get(uid: PodUid): PodSnapshot | undefined };
  readonly wake: (uid: PodUid) => void;
};

export async function createDra(env: Environment, deps: DraDeps): Promise<Dra> {
  const { client, alive, sourcesReady, observed, wake } = deps;
  const { clock, flags, gates, registry } = env;
  const log = env.log.child({ component: 'dra' });
  const metrics = draMetrics(registry, () => manager.inUse());
  const health = new HealthCache({ clock, log }, { file: join(flags.rootDir, 'dra_health_state') });
  const slices = client === undefined ? undefined : sliceCleaner(env, client);
  const tell = (driver: string): void => manager.podsOf(driver).forEach(wake);
  const drivers = new Drivers({
    clock,
    log,
    durations: metrics.calls,
    events: {
      onPresent: (driver) => slices?.driverBack(driver),
      onAbsent: (driver) => slices?.driverGone(driver),
      onHealth: (driver, devices) => health.update(driver, devices) && tell(driver),
      onHealthLost: (driver) => health.clear(driver) && tell(driver),
    },
  });
  const manager = new DraManager(
    {
      clock,
      log,
      drivers,
      claim: (namespace, name, signal) =>
        client === undefined ? noSuchClaim(name) : client.get(RESOURCE_CLAIMS, { namespace, name }, signal),
      pods: { alive, sourcesReady, isRunning: (uid) => isRunning(observed.get(uid)) },
      health,
      durations: metrics.operations,
    },
    {
      checkpoint: join(flags.rootDir, 'dra_manager_state'),
      extendedResources: gates.enabled('DRAExtendedResource'),
      podGroups: gates.enabled('DRAWorkloadResourceClaims'),
      healthMessages: gates.enabled('ResourceHealthStatusMessage'),
    },
  );
  await Promise.all([manager.load(), health.load()]);
  return {
    manager,
    hook: new DraHook(manager),
    pluginHandler: drivers.handler,
    parts: [manager, closing(drivers, health), ...(slices === undefined ? [] : [slices])],
  };
}

const isRunning = (seen: PodSnapshot | undefined): boolean => seen !== undefined && hasRunningContainers(seen);

const sliceCleaner = ({ clock, log, nodeName }: Environment, client: Client): SliceCleaner =>
  new SliceCleaner(
    {
      clock,
      log: log.child({ component: 'dra' }),
      deleteSlices: (fieldSelector, signal) => client.delete(RESOURCE_SLICES, { query: { fieldSelector } }, {}, signal),
    },
    { nodeName },
  );

const noSuchClaim = (name: string): Promise<never> => notFound(`resourceclaims.resource.k8s.io "${name}" not found`);

const closing = (drivers: Drivers, health: HealthCache): Runnable => ({
  name: 'dra-drivers',
  run: async (signal) => {
    await aborted(signal);
    await Promise.all([drivers.close(), health.close()]);
  },
});
