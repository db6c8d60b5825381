// Eviction: statistics in, pressures to admission and node status, pods out.
import { stat } from 'node:fs/promises';
import { uidOf, type Pod } from '../core/pod.ts';
import { EvictionManager } from '../eviction/eviction-manager.ts';
import type { DiskLayout } from '../eviction/figures.ts';
import { parseThresholds } from '../eviction/thresholds.ts';
import { evictPod } from '../pods/evict.ts';
import { mayHaveRunningContainers } from '../pods/worker-state.ts';
import type { StatsProvider } from '../stats/stats-provider.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { PodLife } from './pod-life.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Upkeep } from './upkeep.ts';
import type { Volumes } from './volumes.ts';

export type EvictionParts = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly active: () => readonly Pod[];
  readonly life: PodLife;
  readonly volumes: Volumes;
  readonly upkeep: Upkeep;
  readonly stats: StatsProvider;
};

export function buildEviction(parts: EvictionParts): EvictionManager {
  const { base, edge, cluster, active, life, volumes, upkeep, stats } = parts;
  const { clock, config, registry } = base;
  const { workers, housekeeping } = life;
  const { events } = cluster;
  return new EvictionManager(
    {
      pods: {
        active,
        evict: (pod, why, signal) => evictPod({ workers, events, clock }, pod, why, signal),
        gone: (pod) =>
          !mayHaveRunningContainers(workers.stateOf(uidOf(pod)), housekeeping.synced) &&
          volumes.manager.mountsOf(uidOf(pod)).size === 0,
      },
      figures: {
        node: (signal) => stats.node(signal),
        pods: async (signal) => (await stats.summary({}, signal)).pods,
      },
      layout: (signal) => diskLayout(base, edge, signal),
      reclaim: {
        unusedContainers: async (signal) => void (await upkeep.collector.collect({ allUnused: true }, signal)),
        unusedImages: async (signal) => void (await upkeep.imageGc.deleteUnused(signal)),
      },
      events,
      onPressure: () => cluster.nodeChanged(),
      infra: { clock, log: base.log.child({ component: 'eviction' }), registry },
    },
    {
      thresholds: parseThresholds(config, config.enforceNodeAllocatable.includes('pods')),
      transitionMs: config.evictionPressureTransitionPeriodMs,
      maxPodGraceSeconds: config.evictionMaxPodGracePeriod,
      localStorageLimits: config.localStorageCapacityIsolation,
    },
  );
}

async function diskLayout({ flags }: Foundation, { cri }: RuntimeEdge, signal: AbortSignal): Promise<DiskLayout> {
  const reported = await cri.images.imageFsInfo({}, signal);
  const deviceOf = async (path: string | undefined): Promise<number | undefined> =>
    path === undefined ? undefined : (await stat(path)).dev;
  const own = await deviceOf(flags.rootDir);
  const images = (await deviceOf(reported.imageFilesystems[0]?.fsId?.mountpoint)) ?? own;
  const containers = (await deviceOf(reported.containerFilesystems[0]?.fsId?.mountpoint)) ?? images;
  if (images === own) return 'shared';
  return containers === images ? 'dedicated' : 'split';
}
