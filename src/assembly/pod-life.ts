// The life of pods: what is desired, the workers that bring it about, and the statuses that tell of it.
import { availableParallelism } from 'node:os';
import type { PodAdmission } from '../admission/pod-admission.ts';
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import { isAlive } from '../core/snapshot.ts';
import type { GarbageCollector } from '../garbage/collector.ts';
import { ContainerPruner } from '../garbage/container-pruner.ts';
import { PodLeftovers } from '../garbage/pod-leftovers.ts';
import { pullSecretsOf } from '../images/pull-secrets.ts';
import type { Runnable } from '../lib/supervise.ts';
import { observedSandbox } from '../observe/snapshot-of.ts';
import { AwaitMirror } from '../pods/await-mirror.ts';
import { FinishPod, type FinishPodDeps } from '../pods/finish-pod.ts';
import { Housekeeping } from '../pods/housekeeping.ts';
import { PodChanges } from '../pods/pod-changes.ts';
import type { PodMetrics } from '../pods/pod-metrics.ts';
import { PodStatusWriter } from '../pods/pod-status-writer.ts';
import type { PodStore } from '../pods/pod-store.ts';
import { PodWorkers, workerSteps, type WorkerSteps } from '../pods/pod-workers.ts';
import { RuntimePort } from '../pods/runtime-port.ts';
import { StartErrors } from '../pods/start-errors.ts';
import { StartTurns } from '../pods/start-turns.ts';
import { SyncPod, type PodPrerequisites } from '../pods/sync-pod.ts';
import { TerminatePod, type TerminatePodDeps } from '../pods/terminate-pod.ts';
import { contentMayBeRemoved } from '../pods/worker-state.ts';
import type { ProbeManager } from '../probes/probe-manager.ts';
import { PodCgroupLife } from '../resources/pod-cgroup-life.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import type { PodRuntime } from '../runtime/pod-runtime.ts';
import type { UserNamespaces } from '../runtime/user-namespaces.ts';
import { derivePodStatus } from '../status/derive.ts';
import type { StatusStore } from '../status/status-store.ts';
import type { TerminationMessages } from '../status/termination-messages.ts';
import {
  tracedAdmission,
  tracedObservation,
  tracedPrerequisites,
  tracedSteps,
  tracedTurns,
} from '../trace/traced-ports.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { DeviceHealth } from './device-managers.ts';
import { live, type Foundation } from './foundation.ts';
import type { Images } from './images.ts';
import type { Resizing } from './resizing.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Volumes } from './volumes.ts';

export type PodLifeDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly volumes: Volumes;
  readonly cgroups: PodCgroups;
  readonly runtime: PodRuntime;
  readonly userns: UserNamespaces;
  readonly probes: ProbeManager;
  readonly statuses: StatusStore;
  readonly messages: TerminationMessages;
  readonly store: PodStore;
  readonly admission: PodAdmission;
  readonly sourcesReady: () => boolean;
  readonly images: Images;
  /** The tiers' weights follow their pods. */
  readonly tiers: () => { refresh(signal: AbortSignal): Promise<void> };
  readonly collector: () => GarbageCollector;
  readonly resizing: Resizing;
  /** How the devices of a container are, where the status is to say it; one for each kind of device. */
  readonly deviceHealth: readonly DeviceHealth[];
  readonly claims: { unprepare(pod: Pod, signal: AbortSignal): Promise<void> };
  readonly podMetrics: PodMetrics;
};

export type PodLife = {
  readonly workers: PodWorkers;
  readonly changes: PodChanges;
  readonly housekeeping: Housekeeping;
  /** A probe has something new to say about the pod. */
  readonly probed: (uid: PodUid) => void;
  /** Whether pods wait for others to start before them. */
  readonly crowded: () => boolean;
  /** Resolves when no pods are starting. */
  readonly quiet: (signal: AbortSignal) => Promise<void>;
  readonly parts: readonly Runnable[];
};

/** Two per core keep the runtime busy. More makes everybody wait for everybody, and each start cost more. */
const STARTS_AT_ONCE = Math.max(4, 2 * availableParallelism());

export function buildPodLife(deps: PodLifeDeps): PodLife {
  const { base, edge, cluster, statuses, store, podMetrics, sourcesReady } = deps;
  const { clock, tracer } = base;
  const { resizes, pods: resizing } = deps.resizing;
  const { cache } = edge.observer;
  const turns = new StartTurns(clock, { atOnce: STARTS_AT_ONCE });
  const { steps, terminate } = buildSteps(deps, turns);
  const workers = new PodWorkers(
    {
      steps: tracedSteps(tracer, podMetrics.timed(steps)),
      desired: { get: (uid) => resizing.allocated(store.get(uid)) },
      isAlive: (uid) => isAlive(cache.get(uid)),
      onTerminated: (uid) => {
        cluster.statusChanged(uid);
        resizes.retry('pod_terminated');
      },
      onFinished: () => housekeeping.wake(),
      onRestarted: (pod) => {
        podMetrics.restarted(pod);
        statuses.reopen(uidOf(pod));
      },
      clock,
      log: base.log.child({ component: 'pod-workers' }),
    },
    live(base, ['syncFrequency'], (now) => ({
      get syncFrequencyMs() {
        return now.current.syncFrequencyMs;
      },
    })),
  );
  const changes = new PodChanges({
    store,
    workers,
    status: statuses,
    admission: tracedAdmission(tracer, (pod) => cache.get(uidOf(pod)) !== undefined, deps.admission),
    resizes: resizing,
    sourcesReady,
    onRemoved: () => {
      housekeeping.wake();
      resizes.retry('pods_removed');
    },
    events: cluster.events,
    clock,
    log: base.log.child({ component: 'pod-changes' }),
  });
  const housekeeping = new Housekeeping({
    store,
    workers,
    observed: cache,
    leftovers: leftoversOf(deps),
    ready: () => sourcesReady() && cache.ready,
    onOrphan: () => podMetrics.orphaned(),
    clock,
    log: base.log.child({ component: 'housekeeping' }),
  });
  const pruner = new ContainerPruner(
    {
      observed: cache,
      contentRemovable: (uid) => contentMayBeRemoved(workers.stateOf(uid), false),
      collector: deps.collector,
      log: base.log.child({ component: 'garbage' }),
    },
    base.flags.maximumDeadContainersPerContainer,
  );
  edge.health.onNetworkReady(() => workers.wakeAll());
  cache.onChange((uid, events) => {
    workers.wake(uid);
    housekeeping.podObserved(uid);
    pruner.observed(uid, events);
  });
  return {
    workers,
    changes,
    housekeeping,
    probed: (uid) => {
      workers.wake(uid);
      terminate.probed(uid);
    },
    crowded: () => turns.waiting > 0,
    quiet: (signal) => turns.quiet(signal),
    parts: [workers, changes, housekeeping, pruner],
  };
}

function buildSteps(
  deps: PodLifeDeps,
  turns: StartTurns,
): { readonly steps: WorkerSteps; readonly terminate: TerminatePod } {
  const { base, edge, cluster, statuses, probes } = deps;
  const { clock, tracer } = base;
  const { events } = cluster;
  const startErrors = new StartErrors();
  const observed = tracedObservation(tracer, edge.observer.cache);
  const status = statusWriter(deps, startErrors);
  const runtime = new RuntimePort({
    runtime: deps.runtime,
    pullSecrets: (pod, signal) => pullSecretsOf(cluster, pod, signal),
    probes: probes.results,
    resizes: deps.resizing.pods,
    observedSandbox,
  });
  const life = new PodCgroupLife({
    cgroups: deps.cgroups,
    tiers: deps.tiers,
    onMade: (pod) => deps.resizing.pods.cgroupMade(pod),
  });
  const sync = new SyncPod({
    observed,
    status,
    startErrors,
    prerequisites: tracedPrerequisites(tracer, prerequisitesOf(deps, life)),
    runtime,
    turns: tracedTurns(tracer, turns),
    events,
    clock,
  });
  const unprepareClaims: TerminatePodDeps['unprepareClaims'] = (pod, signal) => deps.claims.unprepare(pod, signal);
  const terminate = new TerminatePod({ observed, status, probes, runtime, unprepareClaims, events });
  const finish = new FinishPod({ observed, status, cleanup: cleanupOf(deps, life), store: statuses });
  return { steps: workerSteps(sync, terminate, finish), terminate };
}

function statusWriter(deps: PodLifeDeps, startErrors: StartErrors): PodStatusWriter {
  const { base, edge, cluster, probes, resizing } = deps;
  return new PodStatusWriter({
    store: deps.statuses,
    derive: (facts) =>
      resizing.pods.withConditions(
        derivePodStatus({
          ...facts,
          runtimeName: edge.version.name,
          actuated: resizing.pods.actuatedOf(uidOf(facts.pod)),
          readiness: probes.readinessOf(facts.pod),
          hostIPs: cluster.nodeIps(),
          deviceHealth: deps.deviceHealth.map((ask) => (container) => ask(facts.pod, container)),
        }),
        facts.pod,
        facts.terminal,
      ),
    messages: deps.messages,
    startErrors,
    events: cluster.events,
    clock: base.clock,
  });
}

function prerequisitesOf(deps: PodLifeDeps, life: PodCgroupLife): PodPrerequisites {
  const { base, edge, cluster, cgroups, volumes, probes } = deps;
  const mirrors = new AwaitMirror({
    observed: edge.observer.cache,
    podsRead: (signal) => cluster.podsRead(signal),
    clock: base.clock,
  });
  return {
    awaitMirror: (pod, signal) => mirrors.before(pod, signal),
    networkProblem: () => edge.health.networkProblem(),
    registerObjects: (pod) => cluster.register(pod),
    cgroupExists: (pod, signal) => cgroups.exists(pod, signal),
    ensureCgroup: (pod, signal) => life.ensure(pod, signal),
    keepMirror: (pod) => cluster.keepMirror(pod),
    ensureDirectories: (pod) => volumes.podDirs.ensure(uidOf(pod)),
    mountVolumes: (pod, signal) => volumes.manager.waitMounted(pod, signal),
    addProbes: (pod) => probes.addPod(pod),
  };
}

const cleanupOf = (
  { images, volumes, cluster, runtime }: PodLifeDeps,
  life: PodCgroupLife,
): FinishPodDeps['cleanup'] => ({
  volumesUnwanted: (uid) => volumes.manager.podRemoved(uid),
  waitUnmounted: (uid, signal) => volumes.manager.waitUnmounted(uid, signal),
  unregisterObjects: (pod) => cluster.unregister(pod),
  destroyCgroup: (uid, signal) => life.destroy(uid, signal),
  forgetImages: (uid) => images.puller.forgetPod(uid),
  forgetRuntime: (uid, pod) => runtime.forget(uid, pod),
});

const leftoversOf = (deps: PodLifeDeps): PodLeftovers =>
  new PodLeftovers({
    records: [deps.statuses, deps.messages, deps.probes, deps.base.tracer, deps.resizing.pods, deps.userns],
    observed: deps.edge.observer.cache,
    containers: { removeContainersOf: (snapshot, signal) => deps.collector().removeContainersOf(snapshot, signal) },
    mirrors: deps.cluster,
    directories: deps.volumes.podDirs,
    volumes: deps.volumes.manager,
    cgroups: deps.cgroups,
    onSwept: (cleaned, failed) => deps.podMetrics.swept(cleaned, failed),
    log: deps.base.log.child({ component: 'garbage' }),
  });
