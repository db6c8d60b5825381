// What keeps the node clean while pods come and go: dead containers, logs, images, and news of killed processes.
import { createGarbage, type Garbage } from '../garbage/create.ts';
import type { PodLeftoversDeps } from '../garbage/pod-leftovers.ts';
import { createImageGc, type Images } from '../images/create.ts';
import type { ImageGc } from '../images/image-gc.ts';
import type { Runnable } from '../lib/supervise.ts';
import { createLogRotation } from '../logs/create.ts';
import { createOomWatcher } from '../oom/create.ts';
import type { PodLife } from '../pods/create.ts';
import type { PodMetrics } from '../pods/pod-metrics.ts';
import type { PodStore } from '../pods/pod-store.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { Managers } from './managers.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Volumes } from './volumes.ts';

export type Upkeep = Garbage & { readonly imageGc: ImageGc; readonly parts: readonly Runnable[] };

export type UpkeepDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly images: Images;
  readonly managers: Managers;
  readonly store: PodStore;
  readonly volumes: Volumes;
  /** Parts that remember something by pod. */
  readonly records: PodLeftoversDeps['records'];
  readonly podMetrics: PodMetrics;
  readonly life: () => PodLife;
  readonly sourcesReady: () => boolean;
};

export async function buildUpkeep(deps: UpkeepDeps): Promise<Upkeep> {
  const { base, edge, cluster, store, volumes, managers, life } = deps;
  const { runtime, images } = edge.cri;
  const { cache } = edge.observer;
  const { events } = cluster;
  const garbage = createGarbage(base, {
    ...deps,
    events,
    remover: managers.remover,
    runtime,
    observed: cache,
    leftovers: {
      records: deps.records,
      mirrors: cluster,
      directories: volumes.podDirs,
      volumes: volumes.manager,
      cgroups: managers.cgroups,
      onSwept: (cleaned, failed) => deps.podMetrics.swept(cleaned, failed),
    },
  });
  const imageGc = createImageGc(
    base,
    { images, observed: cache, desired: store, records: deps.images.records, events },
    edge.sandboxImage,
  );
  const rotation = createLogRotation(base, { runtime, observed: cache });
  const oom = await createOomWatcher(
    base,
    { desired: store, observer: edge.observer, events, wake: (uid) => life().workers.wake(uid) },
    edge.cgroupDriver,
  );
  return { ...garbage, imageGc, parts: [garbage.pruner, garbage.collector, imageGc, rotation, oom] };
}
