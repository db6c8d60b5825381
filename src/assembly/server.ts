// The kubelet's own servers, fitted with what they show and whom they ask.
import { configz } from '../config/configz.ts';
import type { Pod } from '../core/pod.ts';
import type { Images } from '../images/create.ts';
import type { Runnable } from '../lib/supervise.ts';
import { readLogs } from '../logs/read-logs.ts';
import type { PodStore } from '../pods/pod-store.ts';
import type { NodePage } from '../page/page.ts';
import { createReviews, createServing } from '../security/create.ts';
import { createServer } from '../server/create.ts';
import type { EndpointDeps, Statistics } from '../server/endpoints.ts';
import type { PodsFeed } from '../server/pods-feed.ts';
import { KnownPods } from '../server/pods-view.ts';
import type { Sources } from '../sources/create.ts';
import type { StatusStore } from '../status/status-store.ts';
import { drawn } from '../trace/waterfall.ts';
import type { PodExplainer } from '../why/pod-facts.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { Managers } from './managers.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export type ServerDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly store: PodStore;
  readonly statuses: StatusStore;
  readonly sources: Sources;
  readonly active: () => readonly Pod[];
  readonly managers: Managers;
  readonly explainer: PodExplainer;
  readonly images: Images;
  readonly page: NodePage;
  /** Absent without the gate `PodsAPI`. */
  readonly feed: PodsFeed | undefined;
  readonly process: EndpointDeps['process'];
  readonly stats: Statistics;
};

export const buildServer = (deps: ServerDeps): Promise<readonly Runnable[]> => {
  const { base, edge, cluster, store, sources, active, managers } = deps;
  return createServer(base, {
    health: base.health,
    localHealth: base.localHealth,
    pods: new KnownPods(deps),
    observed: edge.observer.cache,
    runtime: edge.cri.runtime,
    statistics: deps.stats,
    probeRegistry: base.probeRegistry,
    sources,
    tracing: { waterfalls: base.tracer, drawn },
    configz: () => configz(base, edge),
    readLogs,
    process: deps.process,
    explainer: deps.explainer,
    nodeViews: { events: () => cluster.events.ring.all(), pulls: () => deps.images.puller.pulls() },
    page: deps.page,
    local: { active, all: () => store.all(), assigned: managers.assigned, feed: deps.feed },
    reviews: (observe) => createReviews(base, cluster.api?.reviews, observe),
    openServing: (onChange) =>
      createServing(base, {
        client: cluster.api?.main,
        addresses: () => cluster.node()?.status?.addresses ?? [],
        onChange,
      }),
  });
};
