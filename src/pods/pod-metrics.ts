// How long pods take, and how their containers end. Fed by what happens to pods anyway: changes from the sources, new
// statuses, and the workers' steps.
import { named } from '../lib/by-name.ts';
import type { PodUid } from '../core/ids.ts';
import {
  CONFIG_SEEN,
  isStaticPod,
  uidOf,
  type ContainerStatus,
  type Pod,
  type PodStatus,
  type Volume,
} from '../core/pod.ts';
import { parseTimeMs } from '../core/time.ts';
import type { Clock } from '../lib/clock.ts';
import type { Registry } from '../lib/metrics.ts';
import type { WorkerSteps } from './pod-workers.ts';
import { podFamilies, type PodFamilies } from './pod-families.ts';

export type WorkerOperation = 'create' | 'update' | 'sync' | 'kill' | 'terminated';

/** What is remembered of a pod while it is known. */
type Known = {
  /** As its worker saw it last. */
  synced?: Pod;
  status?: PodStatus;
  /** It came to us unstarted, so that its start can be timed. */
  watched: boolean;
  /** Milliseconds spent on images, overlapping pulls counted once. */
  pullingMs: number;
  pulls: number;
  pullingSince: number;
  started: boolean;
  /** Since when a new status waits to be told. */
  untoldSince: number | undefined;
  /** Gone at its source; forgotten once its worker is through with it, too. */
  removed: boolean;
  finished: boolean;
};

export class PodMetrics {
  readonly #clock: Clock;
  readonly #families: PodFamilies;
  readonly #pods = new Map<PodUid, Known>();
  #networkSeen = false;

  constructor(clock: Clock, registry: Registry) {
    this.#clock = clock;
    this.#families = podFamilies(registry);
  }

  /** The API server knows the pod's status now. */
  statusSynced(uid: PodUid): void {
    const known = this.#pods.get(uid);
    if (known?.untoldSince === undefined) return;
    this.#families.statusSync.observe((this.#clock.monotonic() - known.untoldSince) / 1000);
    known.untoldSince = undefined;
  }

  /** The runtime had a pod that nobody knows. */
  orphaned(): void {
    this.#families.orphans.inc();
  }

  /** The last sweep for what pods left on disk. */
  swept(cleaned: number, failed: number): void {
    this.#families.sweptPods.set(cleaned);
    this.#families.sweepFailures.set(failed);
  }

  /** The same UID came back after its pod was stopped. */
  restarted(pod: Pod): void {
    this.#families.restarts.inc({ static: isStaticPod(pod) ? 'true' : '' });
  }

  /** A change of the sources. */
  changed(op: 'ADD' | 'UPDATE' | 'DELETE' | 'REMOVE' | 'RECONCILE', pods: readonly Pod[]): void {
    for (const pod of pods) {
      if (op === 'REMOVE') this.#removed(uidOf(pod));
      else {
        if (op === 'ADD') this.#pods.set(uidOf(pod), newcomer());
        this.#watch(pod, op === 'ADD');
      }
    }
  }

  /** The pod's status as it is told to the API server. */
  statusChanged(reported: { readonly pod: Pod; readonly status: PodStatus } | undefined): void {
    const known = reported === undefined ? undefined : this.#pods.get(uidOf(reported.pod));
    if (reported === undefined || known === undefined) return;
    const { pod, status } = reported;
    const before = known.status;
    known.status = status;
    known.untoldSince ??= this.#clock.monotonic();
    const phase = (before ?? pod.status)?.phase ?? 'Pending';
    if (phase === 'Pending' && status.phase === 'Running') this.#families.startDuration.observe(this.#sinceSeen(pod));
    this.#countTerminations(before, status);
  }

  /** The steps of the workers, timed. */
  timed(steps: WorkerSteps): WorkerSteps {
    return {
      sync: (pod, signal) => this.step('sync', uidOf(pod), pod, () => steps.sync(pod, signal)),
      dueAt: (pod) => steps.dueAt(pod),
      terminate: (target, state, signal) =>
        this.step('kill', target.uid, target.pod, () => steps.terminate(target, state, signal)),
      finish: (target, signal) => this.step('terminated', target.uid, target.pod, () => steps.finish(target, signal)),
    };
  }

  /** Times one step of a pod's worker. */
  async step<T>(
    kind: 'sync' | 'kill' | 'terminated',
    uid: PodUid,
    pod: Pod | undefined,
    work: () => Promise<T>,
  ): Promise<T> {
    const operation = kind === 'sync' && pod !== undefined ? this.#operation(uid, pod) : kind;
    const start = this.#clock.monotonic();
    try {
      return await work();
    } finally {
      this.#families.workerDuration.observe((this.#clock.monotonic() - start) / 1000, { operation_type: operation });
      if (kind === 'terminated') this.#finished(uid);
    }
  }

  /** Times the images of a pod, which its start is not blamed for. */
  async pulling<T>(uid: PodUid, work: () => Promise<T>): Promise<T> {
    const known = this.#pods.get(uid);
    if (known === undefined) return work();
    if (known.pulls++ === 0) known.pullingSince = this.#clock.monotonic();
    try {
      return await work();
    } finally {
      if (--known.pulls === 0) known.pullingMs += this.#clock.monotonic() - known.pullingSince;
    }
  }

  #known(uid: PodUid): Known {
    let known = this.#pods.get(uid);
    if (known === undefined) this.#pods.set(uid, (known = newcomer()));
    known.removed = false;
    return known;
  }

  #removed(uid: PodUid): void {
    const known = this.#pods.get(uid);
    if (known === undefined) return;
    known.removed = true;
    if (known.finished || known.synced === undefined) this.#pods.delete(uid);
  }

  #finished(uid: PodUid): void {
    const known = this.#pods.get(uid);
    if (known === undefined) return;
    known.finished = true;
    if (known.removed) this.#pods.delete(uid);
  }

  #operation(uid: PodUid, pod: Pod): WorkerOperation {
    const known = this.#pods.get(uid);
    if (known === undefined) return 'sync';
    const before = known.synced;
    known.synced = pod;
    if (before === pod) return 'sync';
    if (before !== undefined) return 'update';
    this.#families.workerStart.observe(this.#sinceSeen(pod));
    this.#families.containersPerPod.observe(pod.spec.containers.length);
    return 'create';
  }

  /** How many pods are remembered. */
  get size(): number {
    return this.#pods.size;
  }

  /** The API server's word counts: the moment its copy of the pod says that all containers were started. */
  #watch(pod: Pod, isNew: boolean): void {
    const known = this.#known(uidOf(pod));
    if (isStaticPod(pod)) return;
    if (isNew) known.watched = pod.status?.startTime === undefined && !isUnschedulable(pod.status);
    if (!known.watched || known.started || !allStarted(pod)) return;
    known.started = true;
    const createdMs = parseTimeMs(pod.metadata.creationTimestamp);
    const totalMs = this.#clock.now() - createdMs;
    this.#families.startTotal.observe(totalMs / 1000);
    if (isStateful(pod)) return;
    const sli = Math.max(0, totalMs - known.pullingMs - initMs(pod.status)) / 1000;
    this.#families.startSli.observe(sli);
    if (this.#networkSeen || pod.spec.hostNetwork === true) return;
    this.#networkSeen = true;
    this.#families.firstNetwork.set(sli);
  }

  /** Seconds since the source showed the pod first. */
  #sinceSeen(pod: Pod): number {
    const seenMs = parseTimeMs(pod.metadata.annotations?.[CONFIG_SEEN]);
    return seenMs === 0 ? 0 : Math.max(0, this.#clock.now() - seenMs) / 1000;
  }

  #countTerminations(before: PodStatus | undefined, after: PodStatus): void {
    const lists = [
      ['init_container', before?.initContainerStatuses, after.initContainerStatuses],
      ['container', before?.containerStatuses, after.containerStatuses],
      ['ephemeral_container', before?.ephemeralContainerStatuses, after.ephemeralContainerStatuses],
    ] as const;
    for (const [container_type, old, now] of lists)
      for (const ended of newlyTerminated(old ?? [], now ?? []))
        this.#families.terminated.inc({
          container_type,
          exit_code: String(ended.exitCode),
          reason: ended.reason ?? '',
        });
  }
}

const newcomer = (): Known => ({
  watched: false,
  pullingMs: 0,
  pulls: 0,
  pullingSince: 0,
  started: false,
  untoldSince: undefined,
  removed: false,
  finished: false,
});

type Ended = { readonly exitCode: number; readonly reason?: string };

/** Containers that were seen running before: what ended under an earlier kubelet is not counted again. */
export function* newlyTerminated(
  before: readonly ContainerStatus[],
  after: readonly ContainerStatus[],
): Iterable<Ended> {
  for (const status of after) {
    const old = named(before, status.name);
    if (old?.state.running === undefined) continue;
    const same = old.containerID === status.containerID ? status.state.terminated : status.lastState?.terminated;
    if (same !== undefined) yield same;
  }
}

const allStarted = ({ status, spec }: Pod): boolean => {
  const statuses = status?.containerStatuses ?? [];
  return statuses.length === spec.containers.length && statuses.every((s) => s.state.running !== undefined);
};

const isUnschedulable = (status: PodStatus | undefined): boolean =>
  status?.conditions?.some((c) => c.type === 'PodScheduled' && c.status === 'False') === true;

/** One after the other, so their times add up. A sidecar runs on and holds nobody up. */
function initMs(status: PodStatus | undefined): number {
  return (status?.initContainerStatuses ?? []).reduce((ms, { state: { terminated } }) => {
    const start = parseTimeMs(terminated?.startedAt);
    const end = parseTimeMs(terminated?.finishedAt);
    return ms + (start > 0 ? Math.max(0, end - start) : 0);
  }, 0);
}

const STATELESS = ['secret', 'configMap', 'downwardAPI', 'emptyDir', 'projected'];
const isStateful = (pod: Pod): boolean =>
  (pod.spec.volumes ?? []).some((volume: Volume) => STATELESS.every((kind) => volume[kind] === undefined));
