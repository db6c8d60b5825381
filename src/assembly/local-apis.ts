// What the kubelet tells agents of this node on unix sockets: the pod resources API and the pods API.
import { join } from 'node:path';
import type { Pod } from '../core/pod.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { PodStore } from '../pods/pod-store.ts';
import { PodResourcesServer, type Assigned } from '../server/pod-resources.ts';
import { PodsApiServer } from '../server/pods-api.ts';
import { PodsFeed } from '../server/pods-feed.ts';
import type { StatusStore } from '../status/status-store.ts';
import type { Foundation } from './foundation.ts';

type LocalApisDeps = {
  readonly base: Foundation;
  readonly store: PodStore;
  readonly active: () => readonly Pod[];
  readonly assigned: Assigned;
  readonly feed: PodsFeed | undefined;
};

/** What watchers of the pods API are told; undefined where nobody may watch. */
export const buildPodsFeed = (
  { gates, registry }: Foundation,
  pods: PodStore,
  statuses: () => StatusStore,
): PodsFeed | undefined => {
  if (!gates.enabled('PodsAPI')) return undefined;
  const dropped = registry.counter(
    'kubelet_pod_watch_events_dropped_total',
    'Cumulative number of pod watch events dropped.',
  );
  return new PodsFeed({ pods, statuses: { get: (uid) => statuses().get(uid) }, dropped });
};

/** The pod resources API, and the pods API where it is on. */
export function localApis(deps: LocalApisDeps): Runnable[] {
  const { clock, flags } = deps.base;
  if (deps.feed === undefined) return [podResources(deps)];
  const path = join(flags.rootDir, 'pods-api', 'pods-api.sock');
  return [podResources(deps), new PodsApiServer({ clock, feed: deps.feed }, path)];
}

const podResources = ({ base, active, store, assigned }: LocalApisDeps): Runnable =>
  new PodResourcesServer(
    {
      clock: base.clock,
      registry: base.registry,
      active,
      all: () => store.all(),
      listsActiveOnly: base.gates.enabled('KubeletPodResourcesListUseActivePods'),
      assigned,
    },
    join(base.flags.rootDir, 'pod-resources', 'kubelet.sock'),
  );
