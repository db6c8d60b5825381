// Looks at the node every ten seconds and brings it back when it runs short: first by taking away what nobody uses, then
// by evicting one pod at a time. After an eviction it waits for the pod to be gone and looks again as soon as that can show.
import type { EventRecorder } from '../core/events.ts';
import { isCriticalPod, podKey, uidOf, type Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Counter, Histogram, Registry } from '../lib/metrics.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { DiskLayout, NodeFigures, PodFigures } from './figures.ts';
import { hasStorageLimit, storageExcess } from './local-storage.ts';
import type { MemoryNotifier } from './memory-notifier.ts';
import { explain } from './messages.ts';
import { CALM, graceSecondsFor, look, readingsOf, type PressureState, type SignalReading } from './pressure.ts';
import { countsVolumes, rankPods, type FiguresOf } from './ranking.ts';
import { observationsOf, SIGNALS, type Observations, type Pressure, type Signal } from './signals.ts';
import { metBy, withContainerFs, type Threshold } from './thresholds.ts';

export type PodEviction = {
  readonly reason: 'Evicted';
  readonly message: string;
  readonly graceSeconds: number;
  readonly condition?: {
    readonly type: string;
    readonly status: 'True';
    readonly reason: string;
    readonly message: string;
  };
  readonly annotations?: Readonly<Record<string, string>>;
};

/** The pods that may go, and the way to make one go. */
export interface EvictablePods {
  active(): readonly Pod[];
  /** The pod with the resources it was granted: what it only asks for protects nobody. */
  allocated(pod: Pod): Pod;
  /** Resolves when it has stopped. */
  evict(pod: Pod, why: PodEviction, signal: AbortSignal): Promise<void>;
  /** Nothing of it uses the node any more. */
  gone(pod: Pod): boolean;
}

/** What can be taken away without hurting a pod. */
export interface Reclaim {
  unusedContainers(signal: AbortSignal): Promise<void>;
  unusedImages(signal: AbortSignal): Promise<void>;
}

export type MeasuredFigures = {
  readonly figures: readonly PodFigures[];
  /** Uids of candidates whose use of the disk is not known. */
  readonly unmeasured: ReadonlySet<string>;
};

export type EvictionDeps = {
  readonly pods: EvictablePods;
  readonly figures: {
    readonly node: (signal: AbortSignal) => Promise<NodeFigures>;
    /** Costs something for every pod there is: asked only when one may have to go. */
    readonly pods: (signal: AbortSignal) => Promise<readonly PodFigures[]>;
    /** Measures the volumes of these pods first, within a bounded time. */
    readonly measuredPods: (candidates: readonly Pod[], signal: AbortSignal) => Promise<MeasuredFigures>;
  };
  readonly layout: (signal: AbortSignal) => Promise<DiskLayout>;
  readonly reclaim: Reclaim;
  /** Ends a wait early; absent where figures are only read at every look. */
  readonly notifier?: MemoryNotifier;
  readonly events: EventRecorder;
  /** Called when the node's pressures have changed. */
  readonly onPressure: (pressures: readonly Pressure[]) => void;
  readonly infra: { readonly clock: Clock; readonly log: Logger; readonly registry: Registry };
};

export type EvictionOptions = {
  readonly thresholds: readonly Threshold[];
  readonly transitionMs: number;
  readonly maxPodGraceSeconds: number;
  /** Whether pods are held to their local storage limits. */
  readonly localStorageLimits: boolean;
};

const LOOK_EVERY_MS = 10_000;
/** Figures are shared for a second: what was freed shows only in the next ones, and a pod must not go for the last one's sake. */
const SETTLE_MS = 1100;
const GONE_POLL_MS = 1000;
const GONE_PATIENCE_MS = 30_000;

export class EvictionManager implements Runnable {
  readonly name = 'eviction';
  readonly #deps: EvictionDeps;
  readonly #o: EvictionOptions;
  readonly #evictions: Counter;
  readonly #age: Histogram;
  #state: PressureState = CALM;
  #pressures: readonly Pressure[] = [];

  constructor(deps: EvictionDeps, options: EvictionOptions) {
    this.#deps = deps;
    this.#o = options;
    const { registry } = deps.infra;
    this.#evictions = registry.counter(
      'kubelet_evictions',
      '[ALPHA] Cumulative number of pod evictions by eviction signal',
      ['eviction_signal'],
    );
    this.#age = registry.histogram(
      'kubelet_eviction_stats_age_seconds',
      '[ALPHA] Time between when stats are collected, and when pod is evicted based on those stats by eviction signal',
      ['eviction_signal'],
    );
  }

  /** The pressures the node shows now. */
  pressures(): readonly Pressure[] {
    return this.#pressures;
  }

  /** Every threshold against what was measured last. */
  readings(): readonly SignalReading[] {
    return readingsOf(this.#effective, this.#state);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps.infra;
    const { notifier } = this.#deps;
    while (!signal.aborted) {
      try {
        const evicted = await this.lookOnce(signal);
        if (evicted.length > 0) {
          await this.#untilGone(evicted, signal);
          await clock.sleep(SETTLE_MS, signal);
          continue;
        }
      } catch (err) {
        if (signal.aborted) break;
        log.error('eviction could not look at the node', { err });
      }
      await (notifier === undefined ? clock.sleep(LOOK_EVERY_MS, signal) : notifier.rest(LOOK_EVERY_MS, signal));
    }
    notifier?.close();
  }

  /** One look and what follows from it. Returns the pods that were evicted. */
  async lookOnce(signal: AbortSignal): Promise<readonly Pod[]> {
    const { clock } = this.#deps.infra;
    const [figures, layout] = await Promise.all([this.#deps.figures.node(signal), this.#deps.layout(signal)]);
    const observations = observationsOf(figures);
    const thresholds = this.#thresholds(layout);
    const now = clock.monotonic();
    const { state, pressures, urgent } = look(this.#state, thresholds, observations, now, this.#o.transitionMs);
    this.#state = state;
    this.#show(pressures);
    await this.#deps.notifier?.update(thresholds, figures);
    const [first] = urgent;
    const isLimited = this.#o.localStorageLimits && this.#active().some(hasStorageLimit);
    if (first === undefined && !isLimited) return [];
    const evicted = isLimited ? await this.#beyondStorage(layout, signal) : [];
    if (evicted.length > 0 || first === undefined) return evicted;
    const { resource } = SIGNALS[first.signal];
    this.#deps.events.node('Warning', 'EvictionThresholdMet', `Attempting to reclaim ${resource}`);
    if (await this.#reclaimed(first.signal, layout, thresholds, signal)) return [];
    this.#showAges(urgent, observations);
    const { ranked, figuresOf } = await this.#rank(first.signal, layout, signal);
    for (const pod of ranked) {
      const { message, annotations } = explain(resource, pod, figuresOf(pod), urgent, observations);
      const why: PodEviction = {
        reason: 'Evicted',
        message,
        annotations,
        condition: { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message },
        graceSeconds: graceSecondsFor(
          first,
          this.#o.maxPodGraceSeconds,
          pod.spec.terminationGracePeriodSeconds ?? Infinity,
        ),
      };
      if (await this.#evict(pod, why, first.signal, signal)) return [pod];
    }
    this.#deps.infra.log.error('no pod could be evicted', { resource });
    return [];
  }

  /** Before a pod goes for a disk all volumes are measured: the pod that filled it may be new, or new to this process. */
  async #rank(
    cause: Signal,
    layout: DiskLayout,
    signal: AbortSignal,
  ): Promise<{ readonly ranked: readonly Pod[]; readonly figuresOf: FiguresOf }> {
    const { figures } = this.#deps;
    const pods = this.#active();
    if (!countsVolumes(cause, layout)) {
      const figuresOf = byUid(await figures.pods(signal));
      return { ranked: rankPods(pods, cause, layout, figuresOf), figuresOf };
    }
    const measured = await figures.measuredPods(
      pods.filter((pod) => !isCriticalPod(pod)),
      signal,
    );
    const figuresOf = byUid(measured.figures);
    return { ranked: rankPods(pods, cause, layout, figuresOf, measured.unmeasured), figuresOf };
  }

  #active(): readonly Pod[] {
    const { pods } = this.#deps;
    return pods.active().map((pod) => pods.allocated(pod));
  }

  #layout: DiskLayout | undefined;
  #effective: readonly Threshold[] = [];

  /** The same objects as long as the layout stays: what was observed about a threshold is remembered by it. */
  #thresholds(layout: DiskLayout): readonly Threshold[] {
    if (layout !== this.#layout) this.#effective = withContainerFs(this.#o.thresholds, layout);
    this.#layout = layout;
    return this.#effective;
  }

  /** How old the figures are by which a pod is chosen: before it is stopped, which may take long. */
  #showAges(thresholds: readonly Threshold[], observations: Observations): void {
    const now = this.#deps.infra.clock.now();
    for (const { signal } of thresholds) {
      const seen = observations.get(signal);
      if (seen !== undefined) this.#age.observe(Math.max(0, now - seen.atMs) / 1000, { eviction_signal: signal });
    }
  }

  #show(pressures: readonly Pressure[]): void {
    const changed = pressures.join() !== this.#pressures.join();
    this.#pressures = pressures;
    if (changed) this.#deps.onPressure(pressures);
  }

  /** All side by side: one that takes its time to stop keeps neither the others nor the next look at the memory waiting for long. */
  async #beyondStorage(layout: DiskLayout, signal: AbortSignal): Promise<readonly Pod[]> {
    const figuresOf = byUid(await this.#deps.figures.pods(signal));
    const evicting = this.#active().map(async (pod) => {
      const figures = figuresOf(pod);
      const excess = figures === undefined ? undefined : storageExcess(pod, figures, layout);
      if (excess === undefined) return [];
      const why: PodEviction = { reason: 'Evicted', message: excess.message, graceSeconds: 1 };
      return (await this.#evict(pod, why, excess.signal, signal)) ? [pod] : [];
    });
    return (await Promise.all(evicting)).flat();
  }

  async #evict(pod: Pod, why: PodEviction, cause: string, signal: AbortSignal): Promise<boolean> {
    const { log } = this.#deps.infra;
    if (isCriticalPod(pod)) {
      log.warn('a critical pod is not evicted', { pod: podKey(pod), cause });
      return false;
    }
    this.#evictions.inc({ eviction_signal: cause });
    try {
      await this.#deps.pods.evict(pod, why, signal);
      log.info('pod evicted', { pod: podKey(pod), cause });
    } catch (err) {
      signal.throwIfAborted();
      // It is on its way out all the same: the worker goes on stopping it.
      log.error('evicted pod did not stop in time', { pod: podKey(pod), err });
    }
    return true;
  }

  /** Takes away what nobody uses; true when no threshold is short of anything after that. */
  async #reclaimed(
    cause: Signal,
    layout: DiskLayout,
    thresholds: readonly Threshold[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const steps = reclaimSteps(cause, layout);
    if (steps.length === 0) return false;
    for (const step of steps) {
      try {
        await this.#deps.reclaim[step](signal);
      } catch (err) {
        signal.throwIfAborted();
        this.#deps.infra.log.warn('something unused could not be taken away', { step, err });
      }
    }
    await this.#deps.infra.clock.sleep(SETTLE_MS, signal);
    const observations = observationsOf(await this.#deps.figures.node(signal));
    return metBy(thresholds, observations, true).length === 0;
  }

  async #untilGone(pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps.infra;
    const end = clock.monotonic() + GONE_PATIENCE_MS;
    while (!signal.aborted && clock.monotonic() < end && !pods.every((pod) => this.#deps.pods.gone(pod)))
      await clock.sleep(GONE_POLL_MS, signal);
  }
}

function byUid(figures: readonly PodFigures[]): FiguresOf {
  const known = new Map(figures.map((p) => [p.podRef.uid, p]));
  return (pod) => known.get(uidOf(pod));
}

/** What helps the filesystem that runs low. */
export function reclaimSteps(signal: Signal, layout: DiskLayout): readonly (keyof Reclaim)[] {
  const fs = signal.split('.')[0] ?? '';
  if (!['nodefs', 'imagefs', 'containerfs'].includes(fs)) return [];
  if (layout === 'shared') return ['unusedContainers', 'unusedImages'];
  if (layout === 'dedicated') return fs === 'nodefs' ? [] : ['unusedContainers', 'unusedImages'];
  return fs === 'imagefs' ? ['unusedImages'] : ['unusedContainers'];
}
