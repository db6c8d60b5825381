// Sizes of volumes, measured in the background and kept until they are measured again. A request never waits for a walk.
import type { PodUid } from '../core/ids.ts';
import { namespaceOf, uidOf, type Pod, type Volume } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Histogram } from '../lib/metrics.ts';
import { abortable, aborted, withDeadline } from '../lib/abort.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Wake } from '../lib/wake.ts';
import { Moment, type VolumeFigures } from './summary-types.ts';

/** What one volume holds; the volume manager's measurement fits. */
export type MeasuredVolume = {
  readonly usedBytes: number;
  readonly inodesUsed: number;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
  readonly health?: { readonly abnormal: boolean };
  /** Who counted, and how long it took. */
  readonly source: string;
  readonly tookMs: number;
};

export type MeasuredPod = {
  readonly uid: string;
  readonly volumes: ReadonlyMap<string, MeasuredVolume>;
  /** Volumes that are there and could not be measured. */
  readonly failed?: ReadonlySet<string>;
};

export type VolumeMeasuringDeps = {
  readonly pods: () => readonly Pod[];
  readonly measure: (uids: readonly PodUid[], signal: AbortSignal) => AsyncIterable<MeasuredPod>;
  readonly durations: Histogram;
  readonly clock: Clock;
  readonly log: Logger;
};

export type PodVolumeFigures = {
  /** On the node's disk, living and dying with the pod: they count as its ephemeral storage. */
  readonly ephemeral: readonly VolumeFigures[];
  readonly others: readonly VolumeFigures[];
};

/** How often to look whether a pod is new or due, where the period is not shorter. */
const LOOK_EVERY_MS = 10_000;
/** Pods that are due so soon are measured together with one that is: what it takes to begin is paid once. */
const TOGETHER_MS = 10_000;

/** Figures as old as those of everything else in one answer: a pod can fill a disk in seconds. */
const RECENT_MS = 1000;
/** For all volumes of all pods together: a node without disk cannot wait for one that does not answer. */
const MEASURE_NOW_MS = 10_000;
/** Pods that are measured side by side when it is urgent. */
const SIDE_BY_SIDE = 4;

const NOTHING: PodVolumeFigures = { ephemeral: [], others: [] };

export class VolumeMeasuring implements Runnable {
  readonly name = 'volume-measuring';
  readonly #deps: VolumeMeasuringDeps;
  readonly #periodMs: number;
  readonly #figures = new Map<PodUid, PodVolumeFigures>();
  readonly #dueAt = new Map<PodUid, number>();
  /** When a pod was measured last, by the monotonic clock. */
  readonly #measuredAt = new Map<PodUid, number>();
  /** Pods with a scratch volume that is there and was never measured. */
  readonly #unmeasured = new Set<PodUid>();
  readonly #wake = new Wake();

  constructor(deps: VolumeMeasuringDeps, options: { readonly periodMs: number }) {
    this.#deps = deps;
    this.#periodMs = options.periodMs;
  }

  of(uid: PodUid): PodVolumeFigures | undefined {
    return this.#figures.get(uid);
  }

  all(): ReadonlyMap<PodUid, PodVolumeFigures> {
    return this.#figures;
  }

  /** Measures pods that are new now, not at the next beat. */
  podsChanged(): void {
    this.#wake.wake();
  }

  /** False where what the pod has written to its volumes is not known. */
  isMeasured(pod: Pod): boolean {
    const uid = uidOf(pod);
    return !hasScratchVolume(pod) || (this.#measuredAt.has(uid) && !this.#unmeasured.has(uid));
  }

  /** A period of zero or less measures nothing by itself. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    if (this.#periodMs <= 0) return aborted(signal);
    const everyMs = Math.min(LOOK_EVERY_MS, this.#periodMs);
    while (!signal.aborted) {
      try {
        await this.measureDue(signal);
      } catch (err) {
        if (!signal.aborted) log.error('volumes were not measured, trying again later', { err });
      }
      await this.#wake.rest(clock, everyMs, signal);
    }
  }

  /** Brings the figures of these pods up to date, as far as that is possible within ten seconds. */
  async measureNow(pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const now = clock.monotonic();
    const isOld = (pod: Pod): boolean => now - (this.#measuredAt.get(uidOf(pod)) ?? -Infinity) >= RECENT_MS;
    const old = pods.filter((pod) => hasScratchVolume(pod) && isOld(pod));
    // One that does not answer holds up one worker, not the pods after it.
    const queue = old.values();
    const work = async (own: AbortSignal): Promise<void> => {
      for (const pod of queue) await this.#measure(new Map([[uidOf(pod), pod]]), own);
    };
    try {
      await withDeadline(clock, signal, MEASURE_NOW_MS, (own) =>
        abortable(own, Promise.all(Array.from({ length: SIDE_BY_SIDE }, () => work(own)))),
      );
    } catch (err) {
      signal.throwIfAborted();
      log.warn('not all volumes could be measured', { err });
    }
  }

  async measureDue(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const pods = this.#deps.pods();
    const known = new Set(pods.map(uidOf));
    for (const uid of this.#dueAt.keys())
      if (!known.has(uid)) {
        this.#dueAt.delete(uid);
        this.#forget(uid);
      }
    const now = clock.monotonic();
    for (const pod of pods) if (!this.#dueAt.has(uidOf(pod)) && !hasVolumes(pod)) this.#nothingOf(uidOf(pod));
    const isDueIn = (pod: Pod, ms: number): boolean => (this.#dueAt.get(uidOf(pod)) ?? 0) <= now + ms;
    if (!pods.some((pod) => isDueIn(pod, 0))) return;
    const due = new Map(pods.filter((pod) => isDueIn(pod, TOGETHER_MS)).map((pod) => [uidOf(pod), pod]));
    for (const uid of due.keys()) this.#dueAt.set(uid, now + this.#periodMs * (1 + clock.random()));
    await this.#measure(due, signal);
  }

  #forget(uid: PodUid): void {
    this.#figures.delete(uid);
    this.#measuredAt.delete(uid);
    this.#unmeasured.delete(uid);
  }

  /** Of those nobody looks at the disk, nor at the mount table. */
  #nothingOf(uid: PodUid): void {
    this.#dueAt.set(uid, Infinity);
    this.#figures.set(uid, NOTHING);
  }

  async #measure(due: ReadonlyMap<string, Pod>, signal: AbortSignal): Promise<void> {
    const { measure, durations } = this.#deps;
    for await (const { uid, volumes, failed } of measure([...due.values()].map(uidOf), signal)) {
      const pod = due.get(uid);
      for (const { source, tookMs } of volumes.values()) durations.observe(tookMs / 1000, { metric_source: source });
      if (pod !== undefined) this.#found(pod, volumes, failed ?? new Set());
    }
  }

  #found(pod: Pod, volumes: ReadonlyMap<string, MeasuredVolume>, failed: ReadonlySet<string>): void {
    const { clock } = this.#deps;
    const uid = uidOf(pod);
    const scratch = scratchVolumes(pod);
    // What was measured before counts until it is measured again.
    const isKnown = this.#measuredAt.has(uid) && !this.#unmeasured.has(uid);
    if (scratch.some(({ name }) => failed.has(name))) {
      if (!isKnown) this.#unmeasured.add(uid);
    } else {
      this.#unmeasured.delete(uid);
      // Volumes that are not set up yet are soon. Until then there is nothing to count.
      if (scratch.length > 0 && scratch.every(({ name }) => !volumes.has(name)))
        this.#dueAt.set(uid, clock.monotonic() + LOOK_EVERY_MS);
    }
    this.#measuredAt.set(uid, clock.monotonic());
    this.#figures.set(uid, sorted(pod, volumes, clock.now()));
  }
}

/** In the order of the pod's spec. */
function sorted(pod: Pod, measured: ReadonlyMap<string, MeasuredVolume>, nowMs: number): PodVolumeFigures {
  const ephemeral: VolumeFigures[] = [];
  const others: VolumeFigures[] = [];
  for (const volume of pod.spec.volumes ?? []) {
    const found = measured.get(volume.name);
    if (found === undefined) continue;
    const claim = claimOf(pod, volume);
    (isLocalEphemeral(volume) ? ephemeral : others).push({
      time: new Moment(nowMs),
      availableBytes: found.availableBytes,
      capacityBytes: found.capacityBytes,
      usedBytes: found.usedBytes,
      inodesFree: found.inodesFree,
      inodes: found.inodes,
      inodesUsed: found.inodesUsed,
      name: volume.name,
      ...(found.health === undefined ? {} : { volumeHealthStats: { abnormal: found.health.abnormal } }),
      ...(claim === undefined ? {} : { pvcRef: { name: claim, namespace: namespaceOf(pod) } }),
    });
  }
  return { ephemeral, others };
}

const hasVolumes = (pod: Pod): boolean => (pod.spec.volumes ?? []).length > 0;

function claimOf(pod: Pod, volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim !== undefined) return volume.persistentVolumeClaim.claimName;
  return volume.ephemeral === undefined ? undefined : `${pod.metadata.name}-${volume.name}`;
}

/** Volumes on the node's disk that the pod writes to. */
const scratchVolumes = (pod: Pod): readonly Volume[] =>
  (pod.spec.volumes ?? []).filter(({ emptyDir }) => emptyDir !== undefined && (emptyDir.medium ?? '') === '');

const hasScratchVolume = (pod: Pod): boolean => scratchVolumes(pod).length > 0;

/** Memory-backed directories use memory, secrets and tokens are memory too: neither is on the node's disk. */
const isLocalEphemeral = (volume: Volume): boolean =>
  volume.gitRepo !== undefined ||
  volume.configMap !== undefined ||
  (volume.emptyDir !== undefined && (volume.emptyDir.medium ?? '') === '');
