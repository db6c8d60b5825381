// Dynamic resource allocation: the drivers, the claims of pods, and what vanished drivers published.
import { join } from 'node:path';
import type { PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { DraHook } from '../dra/dra-hook.ts';
import { DraManager } from '../dra/dra-manager.ts';
import { Drivers } from '../dra/drivers.ts';
import { HealthCache } from '../dra/health.ts';
import { draMetrics } from '../dra/metrics.ts';
import { SliceCleaner } from '../dra/resource-slices.ts';
import { RESOURCE_CLAIMS, RESOURCE_SLICES } from '../kube/resources.ts';
import { aborted } from '../lib/abort.ts';
import { notFound } from '../lib/errors.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';

export type Dra = {
  readonly manager: DraManager;
  readonly hook: DraHook;
  /** For plugins found in the plugin folder. */
  readonly pluginHandler: Drivers['handler'];
  readonly parts: readonly Runnable[];
};

export type DraDeps = {
  readonly cluster: Pick<ClusterPort, 'api'>;
  readonly alive: () => readonly Pod[];
  readonly sourcesReady: () => boolean;
  readonly wake: (uid: PodUid) => void;
};

export async function buildDra(base: Foundation, { cluster, alive, sourcesReady, wake }: DraDeps): Promise<Dra> {
  const { clock, flags, gates, registry } = base;
  const log = base.log.child({ component: 'dra' });
  const { api } = cluster;
  const metrics = draMetrics(registry, () => manager.inUse());
  const health = new HealthCache({ clock, log }, { file: join(flags.rootDir, 'dra_health_state') });
  const slices = api === undefined ? undefined : sliceCleaner(base, api);
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
        api === undefined ? noSuchClaim(name) : api.main.get(RESOURCE_CLAIMS, { namespace, name }, signal),
      pods: { alive, sourcesReady },
      health,
      durations: metrics.operations,
    },
    {
      checkpoint: join(flags.rootDir, 'dra_manager_state'),
      extendedResources: gates.enabled('DRAExtendedResource'),
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

const sliceCleaner = ({ clock, log, nodeName }: Foundation, { main }: NonNullable<ClusterPort['api']>): SliceCleaner =>
  new SliceCleaner(
    {
      clock,
      log: log.child({ component: 'dra' }),
      deleteSlices: (fieldSelector, signal) => main.delete(RESOURCE_SLICES, { query: { fieldSelector } }, {}, signal),
    },
    { nodeName },
  );

const noSuchClaim = (name: string): Promise<never> => notFound(`resourceclaims.resource.k8s.io "${name}" not found`);

const closing = (drivers: Drivers, health: HealthCache): Runnable => ({
  name: 'dra-drivers',
  run: async (signal) => {
    await aborted(signal);
    await Promise.all([drivers.close(), health.flush()]);
  },
});
