// Eviction: statistics in, pressures to admission and node status, pods out.
import { uidOf, type Pod } from '../core/pod.ts';
import { createEviction } from '../eviction/create.ts';
import type { EvictionManager } from '../eviction/eviction-manager.ts';
import type { PodLifecycles } from '../pods/pod-lifecycles.ts';
import type { Resizing } from '../resources/create-resizing.ts';
import type { StatsProvider } from '../stats/stats-provider.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Upkeep } from './upkeep.ts';

export type EvictionParts = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly active: () => readonly Pod[];
  readonly resizing: Resizing;
  readonly lifecycles: PodLifecycles;
  readonly upkeep: Upkeep;
  readonly stats: StatsProvider;
};

export const buildEviction = (parts: EvictionParts): Promise<EvictionManager> => {
  const { base, edge, cluster, active, resizing, lifecycles, upkeep, stats } = parts;
  return createEviction(base, {
    pods: {
      active,
      allocated: (pod) => resizing.pods.allocated(pod),
      evict: async (pod, why, signal) => {
        await lifecycles.evict(pod, why, signal);
        upkeep.pruner.evicted(uidOf(pod));
      },
      gone: (pod) => lifecycles.gone(pod),
    },
    figures: stats,
    cgroupDriver: edge.cgroupDriver,
    imageFsInfo: (signal) => edge.cri.images.imageFsInfo({}, signal),
    reclaim: {
      unusedContainers: async (signal) => void (await upkeep.collector.collect({ allUnused: true }, signal)),
      unusedImages: async (signal) => void (await upkeep.imageGc.deleteUnused(signal)),
    },
    events: cluster.events,
    onPressure: () => cluster.nodeChanged(),
  });
};
