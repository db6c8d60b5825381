// Statistics, fitted with the pods they are about.
import type { PodStore } from '../pods/pod-store.ts';
import { createStats, type Stats } from '../stats/create.ts';
import type { StatusStore } from '../status/status-store.ts';
import type { Foundation } from './foundation.ts';
import type { PodLife } from '../pods/create.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Volumes } from './volumes.ts';

export type StatsDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly volumes: Volumes;
  readonly store: PodStore;
  readonly statuses: StatusStore;
  readonly life: PodLife;
};

export const buildStats = ({ base, edge, volumes, store, statuses, life }: StatsDeps): Promise<Stats> =>
  createStats(
    base,
    {
      cri: edge.cri,
      volumes: volumes.manager,
      store,
      workers: () => life.workers,
      active: () => life.changes.active(),
      statusOf: (uid) => statuses.statusOf(uid),
      snapshots: () => edge.observer.cache.all(),
      probeRegistry: base.probeRegistry,
      onNode: (figures) => base.records.history.observe(figures),
    },
    { runtime: edge.version, cgroupDriver: edge.cgroupDriver, cgroupVersion: edge.cgroups.version },
  );
