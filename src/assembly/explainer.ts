// Why a pod is not running: everything that knows something about it, for the one function that says so.
import type { PodStore } from '../pods/pod-store.ts';
import type { ProbeManager } from '../probes/probe-manager.ts';
import { needsExplanation } from '../status/explanation.ts';
import type { StatusStore } from '../status/status-store.ts';
import { NotReadyConditions } from '../why/not-ready.ts';
import { PodExplainer } from '../why/pod-facts.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { Images } from '../images/create.ts';
import type { PodLife } from '../pods/create.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Volumes } from './volumes.ts';

export type ExplainerDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly store: PodStore;
  readonly statuses: StatusStore;
  readonly life: PodLife;
  readonly volumes: Volumes;
  readonly images: Images;
  readonly probes: ProbeManager;
};

export type Explainer = { readonly explainer: PodExplainer; readonly notReady: NotReadyConditions };

export function buildExplainer(deps: ExplainerDeps): Explainer {
  const { base, statuses } = deps;
  const explainer = new PodExplainer({
    clock: base.clock,
    pods: deps.store,
    status: statuses,
    events: deps.cluster.events.ring,
    workers: deps.life.workers,
    volumes: deps.volumes.manager,
    pulls: () => deps.images.puller.pulls(),
    probes: deps.probes,
    traces: base.tracer,
    runtime: deps.edge.health,
  });
  const log = base.log.child({ component: 'why' });
  const notReady = new NotReadyConditions(
    { clock: base.clock, log, why: (pod) => explainer.steadyOf(pod), needsExplanation, statuses },
    { enabled: base.flags.notReadyCondition },
  );
  return { explainer, notReady };
}
