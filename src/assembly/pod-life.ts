// The life of pods: what is desired, the workers that bring it about, and the statuses that tell of it.
import { availableParallelism } from 'node:os';
import type { PodUid } from '../core/ids.ts';
import { isStaticPod, uidOf, type Pod } from '../core/pod.ts';
import { emptySnapshot, isAlive, type MadePod, type PodSnapshot } from '../core/snapshot.ts';
import { isFault } from '../lib/errors.ts';
import { aborted, withDeadline } from '../lib/abort.ts';
import { KeyedRunner } from '../lib/keyed-runner.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { PodAdmission } from '../admission/pod-admission.ts';
import type { GarbageCollector } from '../garbage/collector.ts';
import { PodLeftovers } from '../garbage/pod-leftovers.ts';
import { observedSandbox } from '../observe/snapshot-of.ts';
import type { PlegEvent } from '../observe/transitions.ts';
import { contentMayBeRemoved } from '../pods/worker-state.ts';
import type { Resizing } from './resizing.ts';
import { FinishPod } from '../pods/finish-pod.ts';
import { Housekeeping } from '../pods/housekeeping.ts';
import { PodChanges } from '../pods/pod-changes.ts';
import { PodStatusWriter } from '../pods/pod-status-writer.ts';
import { PodStore } from '../pods/pod-store.ts';
import { PodWorkers } from '../pods/pod-workers.ts';
import { StartErrors } from '../pods/start-errors.ts';
import { StartTurns } from '../pods/start-turns.ts';
import { SyncPod, type PodRuntimePort, type RuntimeSyncResult, type PodPrerequisites } from '../pods/sync-pod.ts';
import { TerminatePod } from '../pods/terminate-pod.ts';
import type { ProbeManager } from '../probes/probe-manager.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import type { PodRuntime } from '../runtime/pod-runtime.ts';
import type { UserNamespaces } from '../runtime/user-namespaces.ts';
import type { PodMetrics } from '../stats/pod-metrics.ts';
import { derivePodStatus } from '../status/derive.ts';
import type { StatusStore } from '../status/status-store.ts';
import type { TerminationMessages } from '../status/termination-messages.ts';
import type { ClusterPort } from './cluster-port.ts';
import { live, type Foundation } from './foundation.ts';
import type { Images } from './images.ts';
import { pullSecretsOf } from './pod-runtime.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import { beginTrace, tracedSteps, tracedPrerequisites, tracedTurns } from './tracing.ts';
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
  readonly refreshCgroups: (signal: AbortSignal) => Promise<void>;
  readonly collector: () => GarbageCollector;
  readonly resizing: Resizing;
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
  const { base, edge, cluster, statuses, store, podMetrics } = deps;
  const { clock, tracer } = base;
  const cache = edge.observer.cache;
  const startErrors = new StartErrors();
  const status = statusWriter(deps, startErrors);
  const observed = {
    get: (uid: PodUid) => cache.get(uid),
    beginMutation: (uid: PodUid) => cache.beginMutation(uid),
    refresh: (uid: PodUid, signal: AbortSignal, made?: MadePod) =>
      tracer.span('observe', () => cache.refresh(uid, signal, made)),
  };
  const runtime = runtimePort(deps);
  const turns = new StartTurns(clock, { atOnce: STARTS_AT_ONCE });
  const steps = {
    sync: new SyncPod({
      observed,
      status,
      startErrors,
      prerequisites: tracedPrerequisites(tracer, prerequisitesOf(deps)),
      runtime,
      turns: tracedTurns(tracer, turns),
      events: cluster.events,
      clock,
    }),
    terminate: new TerminatePod({ observed, status, probes: deps.probes, runtime, events: cluster.events }),
    finish: new FinishPod({ observed, status, cleanup: cleanupOf(deps), store: statuses }),
  };
  const adopted = adoption(deps);
  const workers = new PodWorkers(
    {
      steps: tracedSteps(tracer, {
        sync: async (pod, signal) => {
          await adopted(pod, signal);
          return podMetrics.step('sync', uidOf(pod), pod, () => steps.sync.sync(pod, signal));
        },
        terminate: (target, state, signal) =>
          podMetrics.step('kill', target.uid, target.pod, () => steps.terminate.terminate(target, state, signal)),
        finish: (target, signal) =>
          podMetrics.step('terminated', target.uid, target.pod, () => steps.finish.finish(target, signal)),
      }),
      desired: { get: (uid) => deps.resizing.allocated(store.get(uid)) },
      isAlive: (uid) => isAlive(cache.get(uid)),
      onTerminated: (uid) => {
        cluster.statusChanged(uid);
        deps.resizing.resizes.retry('pod_terminated');
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
    admission: {
      admit: (pod, active, signal) => {
        // What runs already, from before a restart, is adopted, not started.
        if (cache.get(uidOf(pod)) === undefined) beginTrace(tracer, 'start', pod);
        const allocated = active.map((p) => deps.resizing.allocated(p));
        return tracer.spanOf(uidOf(pod), 'admit', () => deps.admission.admit(pod, allocated, signal));
      },
    },
    resizes: deps.resizing,
    onRemoved: () => {
      housekeeping.wake();
      deps.resizing.resizes.retry('pods_removed');
    },
    sourcesReady: deps.sourcesReady,
    events: cluster.events,
    clock,
    log: base.log.child({ component: 'pod-changes' }),
  });
  const housekeeping = new Housekeeping({
    store,
    workers,
    observed: cache,
    leftovers: leftoversOf(deps),
    ready: () => deps.sourcesReady() && cache.ready,
    onOrphan: () => podMetrics.orphaned(),
    clock,
    log: base.log.child({ component: 'housekeeping' }),
  });
  let network = edge.health.state().networkReady;
  edge.health.onChange((state) => {
    if (state.networkReady && !network) workers.wakeAll();
    network = state.networkReady;
  });
  const pruning = pruner(deps, workers);
  cache.onChange((uid, events) => {
    if (workers.stateOf(uid) === undefined) housekeeping.wake();
    else workers.wake(uid);
    pruning.died(uid, events);
  });
  const crowded = (): boolean => turns.waiting > 0;
  const quiet = (signal: AbortSignal): Promise<void> => turns.quiet(signal);
  const probed = (uid: PodUid): void => {
    workers.wake(uid);
    steps.terminate.probed(uid);
  };
  return { workers, changes, housekeeping, probed, crowded, quiet, parts: [workers, changes, housekeeping, pruning] };
}

/** How long a static pod that runs already waits for its mirror, which tells how it was under the previous kubelet. */
const MIRROR_WAIT_MS = 3000;

function adoption({ base, edge, cluster }: PodLifeDeps): (pod: Pod, signal: AbortSignal) => Promise<void> {
  const { clock } = base;
  const deadline = clock.monotonic() + MIRROR_WAIT_MS;
  return async (pod, signal) => {
    const leftMs = deadline - clock.monotonic();
    if (leftMs <= 0 || !isStaticPod(pod) || !isAlive(edge.observer.cache.get(uidOf(pod)))) return;
    await withDeadline(clock, signal, leftMs, (own) => cluster.podsRead(own)).catch((err: unknown) => {
      if (!isFault(err, 'deadline')) throw err;
    });
  };
}

function statusWriter(deps: PodLifeDeps, startErrors: StartErrors): PodStatusWriter {
  const { base, edge, cluster, statuses } = deps;
  return new PodStatusWriter({
    store: statuses,
    derive: (facts) =>
      deps.resizing.withConditions(
        derivePodStatus({
          ...facts,
          runtimeName: edge.version.name,
          actuated: deps.resizing.actuatedOf(uidOf(facts.pod)),
          readiness: deps.probes.readinessOf(facts.pod),
          hostIPs: cluster.nodeIps(),
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

/** A container that died makes one of its older selves superfluous; a deleted pod needs none of them. */
function pruner(
  { edge, base, collector }: PodLifeDeps,
  workers: PodWorkers,
): Runnable & { died(uid: PodUid, events: readonly PlegEvent[]): void } {
  const keep = Math.max(1, base.flags.maximumDeadContainersPerContainer);
  const log = base.log.child({ component: 'garbage' });
  let stop: AbortSignal | undefined;
  const runner = new KeyedRunner<PodUid>({
    work: async (uid) => {
      const snapshot = edge.observer.cache.get(uid);
      if (snapshot === undefined || stop === undefined || stop.aborted) return;
      const gone = contentMayBeRemoved(workers.stateOf(uid) ?? { phase: 'syncing' }, true);
      const pruned = gone ? collector().removeContainersOf(snapshot, stop) : collector().prune(snapshot, keep, stop);
      await pruned.catch((err: unknown) => log.debug('dead containers stay for now', { uid, err }));
    },
  });
  return {
    name: 'container-pruning',
    run: async (signal) => {
      stop = signal;
      await aborted(signal);
      await runner.stop();
    },
    died: (uid, events) => {
      if (events.some((e) => e.type === 'ContainerDied' && e.containerName !== undefined)) runner.wake(uid);
    },
  };
}

function runtimePort({ runtime, probes, cluster, resizing }: PodLifeDeps): PodRuntimePort & {
  kill(
    pod: Pod | undefined,
    snapshot: PodSnapshot,
    graceSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<void>;
} {
  return {
    async sync(pod, snapshot, options, signal): Promise<RuntimeSyncResult> {
      const pull = await pullSecretsOf(cluster, pod, signal);
      if (pull.missing.length > 0) {
        const message = `Unable to retrieve some image pull secrets (${pull.missing.join(', ')}); attempting to pull the image may not succeed.`;
        cluster.events.pod(pod, 'Warning', 'FailedToRetrieveImagePullSecret', message);
      }
      resizing.synced(pod, snapshot, undefined);
      const result = await runtime.syncPod(
        {
          pod,
          snapshot: snapshot ?? emptySnapshot(uidOf(pod), pod.metadata.name, pod.metadata.namespace ?? ''),
          pullSecrets: pull.found,
          probes: probes.results,
          ...options,
          isTerminating: () => signal.aborted,
        },
        signal,
      );
      resizing.synced(pod, snapshot, result.resizeError);
      const { made, ...rest } = result;
      return made === undefined ? rest : { ...rest, made: { ...made, sandbox: observedSandbox(made.sandbox) } };
    },
    kill: (pod, snapshot, graceOverrideSeconds, signal) =>
      runtime.killPod({ pod, snapshot, graceOverrideSeconds }, signal),
  };
}

function prerequisitesOf({
  edge,
  cluster,
  cgroups,
  volumes,
  probes,
  resizing,
  refreshCgroups,
}: PodLifeDeps): PodPrerequisites {
  return {
    networkProblem: () => {
      const state = edge.health.state();
      return state.networkReady ? undefined : state.networkErrors.join(', ');
    },
    registerObjects: (pod) => cluster.register(pod),
    cgroupExists: (pod) => cgroups.exists(pod, new AbortController().signal),
    ensureCgroup: async (pod, signal) => {
      const [made] = await Promise.all([cgroups.ensure(pod, signal), refreshCgroups(signal)]);
      if (made) resizing.cgroupMade(pod);
    },
    keepMirror: (pod) => cluster.keepMirror(pod),
    ensureDirectories: (pod) => volumes.podDirs.ensure(uidOf(pod)),
    mountVolumes: (pod, signal) => volumes.manager.waitMounted(pod, signal),
    addProbes: (pod) => probes.addPod(pod),
  };
}

function cleanupOf({
  images,
  volumes,
  cluster,
  cgroups,
  runtime,
  refreshCgroups,
}: PodLifeDeps): ConstructorParameters<typeof FinishPod>[0]['cleanup'] {
  return {
    unmountVolumes: async (uid, signal) => {
      volumes.manager.podRemoved(uid);
      await volumes.manager.waitUnmounted(uid, signal);
    },
    unregisterObjects: (pod) => cluster.unregister(pod),
    destroyCgroup: async (uid, signal) => {
      await cgroups.destroy(uid, signal);
      await refreshCgroups(signal);
    },
    forgetRuntime: async ({ uid, pod }) => {
      images.puller.forgetPod(uid);
      await runtime.forget(uid, pod);
    },
  };
}

const leftoversOf = (deps: PodLifeDeps): PodLeftovers =>
  new PodLeftovers({
    records: [deps.statuses, deps.messages, deps.probes, deps.base.tracer, deps.resizing, deps.userns],
    observed: deps.edge.observer.cache,
    containers: { removeContainersOf: (snapshot, signal) => deps.collector().removeContainersOf(snapshot, signal) },
    mirrors: deps.cluster,
    directories: deps.volumes.podDirs,
    volumes: deps.volumes.manager,
    cgroups: deps.cgroups,
    onSwept: (cleaned, failed) => deps.podMetrics.swept(cleaned, failed),
    log: deps.base.log.child({ component: 'garbage' }),
  });
