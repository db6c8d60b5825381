// What the kubelet tells agents of this node on unix sockets: the pod resources API and, where it is on, the pods API.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { Runnable } from '../lib/supervise.ts';
import { PodResourcesServer, type PodResourcesDeps } from './pod-resources.ts';
import { PodsApiServer } from './pods-api.ts';
import { PodsFeed, type PodsFeedDeps } from './pods-feed.ts';

/** What watchers of the pods API are told; undefined where nobody may watch. */
export function createPodsFeed(
  { gates, registry }: Pick<Environment, 'gates' | 'registry'>,
  deps: Pick<PodsFeedDeps, 'pods' | 'statuses'>,
): PodsFeed | undefined {
  // Shown in any case, as upstream.
  const dropped = registry.counter(
    'kubelet_pod_watch_events_dropped_total',
    '[ALPHA] Cumulative number of pod watch events dropped.',
  );
  if (!gates.enabled('PodsAPI')) return undefined;
  return new PodsFeed({ ...deps, dropped });
}

export type LocalApisDeps = Pick<PodResourcesDeps, 'active' | 'all' | 'assigned'> & {
  /** Absent without the gate `PodsAPI`. */
  readonly feed: PodsFeed | undefined;
};

export function createLocalApis(
  { clock, flags, gates, log, registry }: Pick<Environment, 'clock' | 'flags' | 'gates' | 'log' | 'registry'>,
  { active, all, assigned, feed }: LocalApisDeps,
): readonly Runnable[] {
  const deps = { clock, log: log.child({ component: 'server' }) };
  const listsActiveOnly = gates.enabled('KubeletPodResourcesListUseActivePods');
  const resources = new PodResourcesServer(
    { ...deps, registry, active, all, assigned, listsActiveOnly },
    join(flags.rootDir, 'pod-resources', 'kubelet.sock'),
  );
  if (feed === undefined) return [resources];
  return [resources, new PodsApiServer({ ...deps, feed }, join(flags.rootDir, 'pods-api', 'pods-api.sock'))];
}
