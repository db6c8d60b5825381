// Eviction: statistics in, pressures to admission and node status, pods out.
import { stat } from 'node:fs/promises';
import { uidOf, type Pod } from '../core/pod.ts';
import { DiskLayouts } from '../eviction/disk-layout.ts';
import { EvictionManager } from '../eviction/eviction-manager.ts';
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
  const log = base.log.child({ component: 'eviction' });
  const layouts = new DiskLayouts(
    {
      imageFsInfo: (signal) => edge.cri.images.imageFsInfo({}, signal),
      deviceOf: async (path) => (await stat(path)).dev,
      clock,
      log,
    },
    base.flags.rootDir,
  );
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
        pods: (signal) => stats.pods(signal),
      },
      layout: (signal) => layouts.read(signal),
      reclaim: {
        unusedContainers: async (signal) => void (await upkeep.collector.collect({ allUnused: true }, signal)),
        unusedImages: async (signal) => void (await upkeep.imageGc.deleteUnused(signal)),
      },
      events,
      onPressure: () => cluster.nodeChanged(),
      infra: { clock, log, registry },
    },
    {
      thresholds: parseThresholds(config, config.enforceNodeAllocatable.includes('pods')),
      transitionMs: config.evictionPressureTransitionPeriodMs,
      maxPodGraceSeconds: config.evictionMaxPodGracePeriod,
      localStorageLimits: config.localStorageCapacityIsolation,
    },
  );
}
