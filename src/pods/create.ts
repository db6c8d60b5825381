// Fits the parts of this folder together: the store's changes, the workers with their three steps, and housekeeping.
import { availableParallelism } from 'node:os';
import type { Environment } from '../config/environment.ts';
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import { isAlive, type PodSnapshot } from '../core/snapshot.ts';
import { idleShareReader } from '../host/idle-share.ts';
import type { Runnable } from '../lib/supervise.ts';
import { AwaitMirror } from './await-mirror.ts';
import { FinishPod, type FinishPodDeps } from './finish-pod.ts';
import { Housekeeping, type HousekeepingDeps, type Leftovers } from './housekeeping.ts';
import { PodChanges, type PodChange, type PodChangesDeps } from './pod-changes.ts';
import { PodLifecycles } from './pod-lifecycles.ts';
import type { PodMetrics } from './pod-metrics.ts';
import { PodStatusWriter, type PodStatusWriterDeps } from './pod-status-writer.ts';
import type { PodStore } from './pod-store.ts';
import { PodWorkers, workerSteps, type WorkerSteps } from './pod-workers.ts';
import type { RejectPodDeps } from './reject-pod.ts';
import { RuntimePort, type RuntimePortDeps } from './runtime-port.ts';
import { StartErrors } from './start-errors.ts';
import { StartTurns } from './start-turns.ts';
import { StopTurns } from './stop-turns.ts';
import { SyncPod, type PodPrerequisites, type SyncPodDeps, type Turns } from './sync-pod.ts';
import { TerminatePod, type PodStops, type TerminatePodDeps } from './terminate-pod.ts';

type Observed = SyncPodDeps['observed'] & TerminatePodDeps['observed'];

/** Takes the time of what a pod waits for, by wrapping the ports between the parts. */
export interface PodTracing {
  steps(inner: WorkerSteps): WorkerSteps;
  turns(inner: Turns): Turns;
  stops(inner: PodStops): PodStops;
  prerequisites(inner: PodPrerequisites): PodPrerequisites;
  observed(inner: Observed): Observed;
  admission(runsAlready: (pod: Pod) => boolean, inner: PodChangesDeps['admission']): PodChangesDeps['admission'];
}

export type PodLifeDeps = {
  readonly store: PodStore;
  readonly statuses: PodStatusWriterDeps['store'] &
    PodChangesDeps['status'] &
    FinishPodDeps['store'] & { reopen(uid: PodUid): void };
  readonly derive: PodStatusWriterDeps['derive'];
  readonly messages: PodStatusWriterDeps['messages'];
  readonly observed: Observed & {
    get(uid: PodUid): PodSnapshot | undefined;
    all(): Iterable<PodSnapshot>;
    readonly ready: boolean;
    onChange(fn: (uid: PodUid) => void): void;
  };
  readonly admission: PodChangesDeps['admission'] & NonNullable<RejectPodDeps['counted']>;
  readonly runtime: RuntimePortDeps['runtime'] & { forget(uid: PodUid, pod: Pod | undefined): Promise<void> };
  readonly observedSandbox: RuntimePortDeps['observedSandbox'];
  readonly images: {
    readonly pullSecrets: RuntimePortDeps['pullSecrets'];
    forgetPod(uid: PodUid): void;
  };
  readonly resizing: PodChangesDeps['resizes'] &
    RuntimePortDeps['resizes'] & {
      allocated(pod: Pod | undefined): Pod | undefined;
      /** Room was made: resizes that wait may go on. */
      retry(why: 'pod_terminated' | 'pods_removed'): void;
    };
  readonly cgroups: {
    exists(pod: Pod, signal: AbortSignal): Promise<boolean>;
    ensure(pod: Pod, signal: AbortSignal, isThere?: boolean): Promise<void>;
    destroy(pod: Pod | PodUid, signal: AbortSignal): Promise<void>;
  };
  readonly volumes: {
    waitMounted(pod: Pod, signal: AbortSignal): Promise<void>;
    whenBlocked(uid: PodUid, signal: AbortSignal): Promise<void>;
    podRemoved(uid: PodUid): void;
    reopen(uid: PodUid): void;
    waitUnmounted(uid: PodUid, signal: AbortSignal): Promise<void>;
    mountsOf(uid: PodUid): { readonly size: number };
  };
  readonly directories: { ensure(uid: PodUid): Promise<void> };
  readonly probes: TerminatePodDeps['probes'] & {
    readonly results: RuntimePortDeps['probes'];
    addPod(pod: Pod): void;
  };
  readonly claims: { unprepare(pod: Pod, signal: AbortSignal): Promise<void> };
  /** What pods refer to, at hand from `register` to `unregister`. */
  readonly objects: { register(pod: Pod): void; unregister(pod: Pod): void };
  readonly network: { networkProblem(): string | undefined; onNetworkReady(fn: () => void): void };
  readonly cluster: {
    readonly events: EventRecorder;
    podsRead(signal: AbortSignal): Promise<void>;
    keepMirror(pod: Pod): void;
    statusChanged(uid: PodUid): void;
  };
  readonly leftovers: Leftovers;
  readonly kept: HousekeepingDeps['kept'];
  readonly sourcesReady: () => boolean;
  readonly tracing: PodTracing;
  readonly metrics: PodMetrics;
};

export type PodLife = {
  readonly workers: PodWorkers;
  readonly changes: PodChanges;
  readonly lifecycles: PodLifecycles;
  /** A source has something new. */
  readonly changed: (change: PodChange) => void;
  /** A probe has something new to say about the pod. */
  readonly probed: (uid: PodUid) => void;
  /** Whether pods wait for others to start or stop before them. */
  readonly crowded: () => boolean;
  /** Resolves when no pods are starting or being stopped. */
  readonly quiet: (signal: AbortSignal) => Promise<void>;
  readonly parts: readonly Runnable[];
};

/** Two per core keep the runtime busy. More makes everybody wait for everybody, and each start cost more. */
const STARTS_AT_ONCE = Math.max(4, 2 * availableParallelism());
/** A stop leaves the runtime alone for longer, between its containers and its sandbox. */
const STOPS_AT_ONCE = Math.max(6, 3 * availableParallelism());

export function createPodLife(env: Environment, deps: PodLifeDeps): PodLife {
  const { clock } = env;
  const { cluster, metrics, observed, sourcesReady, volumes } = deps;
  const turns = new StartTurns(clock, { atOnce: STARTS_AT_ONCE, idleShare: idleShareReader() });
  const stops = new StopTurns(clock, { atOnce: STOPS_AT_ONCE, idleShare: idleShareReader() });
  const { steps, terminate } = stepsOf(env, deps, turns, stops);
  const workers = workersOf(env, deps, steps, () => housekeeping.wake());
  const changes = changesOf(env, deps, workers, () => housekeeping.wake());
  const housekeeping = new Housekeeping({
    store: deps.store,
    workers,
    isRejected: (uid) => changes.isRejected(uid),
    observed,
    leftovers: deps.leftovers,
    kept: deps.kept,
    ready: () => sourcesReady() && observed.ready,
    onOrphan: () => metrics.orphaned(),
    clock,
    log: env.log.child({ component: 'housekeeping' }),
  });
  deps.network.onNetworkReady(() => workers.wakeAll());
  observed.onChange((uid) => {
    workers.wake(uid);
    housekeeping.podObserved(uid);
  });
  const synced = (): boolean => housekeeping.synced;
  return {
    workers,
    changes,
    lifecycles: new PodLifecycles({ workers, synced, volumes, events: cluster.events, clock }),
    changed: (change) => {
      metrics.changed(change.op, change.pods);
      void changes.handle(change);
      // With the last source heard, whatever nobody named is an orphan.
      if (sourcesReady() && !housekeeping.synced) housekeeping.wake();
    },
    probed: (uid) => {
      workers.wake(uid);
      terminate.probed(uid);
    },
    crowded: () => turns.waiting + stops.waiting > 0,
    quiet: async (signal) => {
      await turns.quiet(signal);
      await stops.quiet(signal);
    },
    parts: [workers, changes, housekeeping],
  };
}

function workersOf(env: Environment, deps: PodLifeDeps, steps: WorkerSteps, onFinished: () => void): PodWorkers {
  const { cluster, metrics, observed, resizing, statuses, store, tracing, volumes } = deps;
  return new PodWorkers(
    {
      steps: tracing.steps(metrics.timed(steps)),
      desired: { get: (uid) => resizing.allocated(store.get(uid)) },
      isAlive: (uid) => isAlive(observed.get(uid)),
      onTerminated: (uid) => {
        cluster.statusChanged(uid);
        resizing.retry('pod_terminated');
      },
      onFinished,
      onRestarted: (pod) => {
        metrics.restarted(pod);
        statuses.reopen(uidOf(pod));
        volumes.reopen(uidOf(pod));
      },
      onForgotten: (uid) => volumes.reopen(uid),
      clock: env.clock,
      log: env.log.child({ component: 'pod-workers' }),
    },
    env.updates.live(['syncFrequency'], (now) => ({
      get syncFrequencyMs() {
        return now.current.syncFrequencyMs;
      },
    })),
  );
}

/** A static pod that comes back has its former id, and what it left behind does not run. */
const runsAlready =
  ({ observed }: Pick<PodLifeDeps, 'observed'>) =>
  (pod: Pod): boolean =>
    observed.get(uidOf(pod))?.containers.some((c) => c.state === 'running') === true;

const changesOf = (env: Environment, deps: PodLifeDeps, workers: PodWorkers, lookForOrphans: () => void): PodChanges =>
  new PodChanges({
    store: deps.store,
    workers,
    status: deps.statuses,
    admission: deps.tracing.admission(runsAlready(deps), deps.admission),
    runsAlready: runsAlready(deps),
    resizes: deps.resizing,
    sourcesReady: deps.sourcesReady,
    onRemoved: () => {
      lookForOrphans();
      deps.resizing.retry('pods_removed');
    },
    onRefused: lookForOrphans,
    events: deps.cluster.events,
    clock: env.clock,
    log: env.log.child({ component: 'pod-changes' }),
  });

function stepsOf(
  { clock, log }: Environment,
  deps: PodLifeDeps,
  turns: StartTurns,
  stops: StopTurns,
): { readonly steps: WorkerSteps; readonly terminate: TerminatePod } {
  const { cluster, derive, messages, observedSandbox, probes, statuses, tracing } = deps;
  const { events } = cluster;
  const startErrors = new StartErrors();
  const observed = tracing.observed(deps.observed);
  const status = new PodStatusWriter({ store: statuses, derive, messages, startErrors, events, clock });
  const runtime = new RuntimePort({
    runtime: deps.runtime,
    pullSecrets: deps.images.pullSecrets,
    probes: probes.results,
    resizes: deps.resizing,
    observedSandbox,
  });
  const sync = new SyncPod({
    observed,
    status,
    startErrors,
    prerequisites: tracing.prerequisites(prerequisitesOf(clock, deps)),
    runtime,
    turns: tracing.turns(turns),
    adoptions: new StartTurns(clock, { atOnce: STARTS_AT_ONCE }),
    events,
    rejecting: { events, status: statuses, log, counted: deps.admission },
    clock,
  });
  const unprepareClaims: TerminatePodDeps['unprepareClaims'] = (pod, signal) => deps.claims.unprepare(pod, signal);
  const terminate = new TerminatePod({
    observed,
    status,
    probes,
    runtime,
    stops: tracing.stops(stops),
    unprepareClaims,
    events,
  });
  const finish = new FinishPod({ observed, status, cleanup: cleanupOf(deps), store: statuses });
  return { steps: workerSteps(sync, terminate, finish), terminate };
}

function prerequisitesOf(clock: Environment['clock'], deps: PodLifeDeps): PodPrerequisites {
  const { cgroups, cluster, directories, network, objects, observed, probes, volumes } = deps;
  const mirrors = new AwaitMirror({ observed, podsRead: (signal) => cluster.podsRead(signal), clock });
  return {
    awaitMirror: (pod, signal) => mirrors.before(pod, signal),
    networkProblem: () => network.networkProblem(),
    registerObjects: (pod) => objects.register(pod),
    cgroupExists: (pod, signal) => cgroups.exists(pod, signal),
    ensureCgroup: (pod, signal, isThere) => cgroups.ensure(pod, signal, isThere),
    keepMirror: (pod) => cluster.keepMirror(pod),
    ensureDirectories: (pod) => directories.ensure(uidOf(pod)),
    mountVolumes: (pod, signal) => volumes.waitMounted(pod, signal),
    volumesBlocked: (pod, signal) => volumes.whenBlocked(uidOf(pod), signal),
    addProbes: (pod) => probes.addPod(pod),
  };
}

const cleanupOf = ({ cgroups, objects, images, runtime, volumes }: PodLifeDeps): FinishPodDeps['cleanup'] => ({
  volumesUnwanted: (uid) => volumes.podRemoved(uid),
  waitUnmounted: (uid, signal) => volumes.waitUnmounted(uid, signal),
  unregisterObjects: (pod) => objects.unregister(pod),
  destroyCgroup: (pod, signal) => cgroups.destroy(pod, signal),
  forgetImages: (uid) => images.forgetPod(uid),
  forgetRuntime: (uid, pod) => runtime.forget(uid, pod),
});
