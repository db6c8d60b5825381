// The door to all statistics. Whoever asks within a second of somebody else gets the same answer.
import type { ContainerStats, PodSandboxStats } from '../cri/gen/cri.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { cadvisorMetricsText, type MachineReading } from './cadvisor-metrics.ts';
import type { Census } from './census.ts';
import type { ContainerReadings } from './container-readings.ts';
import type { Disks } from './filesystems.ts';
import type { NodeReadings } from './node-readings.ts';
import { shownPods, type PodReadings, type PodsContext, type ShownPod } from './pod-readings.ts';
import { resourceMetricsText } from './resource-metrics.ts';
import { byPod, withRuntimeFigures } from './runtime-figures.ts';
import { wholeFs, type FsCapacity } from './summary.ts';
import { SharedAnswer, type SharedAnswerOptions } from './shared-answer.ts';
import type { NodeFigures, PodFigures, Summary } from './summary-types.ts';
import type { VolumeMeasuring } from './volume-figures.ts';

export type StatsProviderDeps = {
  readonly node: NodeReadings;
  readonly pods: PodReadings;
  readonly containers: ContainerReadings;
  readonly volumes: Pick<VolumeMeasuring, 'measureNow' | 'isMeasured'>;
  /** What there is to read, from the runtime, the cgroups and the disks. */
  readonly sources: {
    readonly snapshots: () => readonly PodSnapshot[];
    readonly census: () => Promise<Census>;
    readonly containerStats: (signal: AbortSignal) => Promise<readonly ContainerStats[]>;
    /** Given where the runtime's own figures of pods count (gate `PodAndContainerStatsFromCRI`). */
    readonly podStats?: (signal: AbortSignal) => Promise<readonly PodSandboxStats[]>;
    readonly disks: (signal: AbortSignal) => Promise<Disks>;
    readonly machine: () => Promise<MachineReading>;
  };
  readonly clock: Clock;
  readonly log: Logger;
  /** Families that are no longer shown are shown all the same (`showHiddenMetricsForVersion`). */
  readonly showHidden?: boolean;
  /** Told of the node's figures whenever they were read. */
  readonly onNode?: (figures: NodeFigures) => void;
};

export type MeasuredPods = {
  readonly figures: readonly PodFigures[];
  /** Pods whose use of the disk is not known. */
  readonly unmeasured: ReadonlySet<string>;
};

export type SummaryOptions = { readonly onlyCpuAndMemory?: boolean };

/** How long the page of the process' own metrics waits for fresh figures of pods. */
const FRESH_MS = 5000;
/** How long those who can do without the runtime, or without a disk, wait for it. */
const PATIENCE_MS = 5000;
const SHARED: SharedAnswerOptions = { maxAgeMs: 1000, deadlineMs: 30_000 };

export class StatsProvider {
  readonly #deps: StatsProviderDeps;
  readonly #full: SharedAnswer<Summary>;
  readonly #reduced: SharedAnswer<Summary>;
  readonly #node: SharedAnswer<NodeFigures>;
  readonly #pods: SharedAnswer<readonly PodFigures[]>;
  readonly #cadvisor: SharedAnswer<string>;
  #latest: Summary | undefined;

  constructor(deps: StatsProviderDeps) {
    this.#deps = deps;
    this.#full = new SharedAnswer(deps.clock, (signal) => this.#fullSummary(signal), SHARED);
    this.#reduced = new SharedAnswer(deps.clock, (signal) => this.#reducedSummary(signal), SHARED);
    this.#node = new SharedAnswer(deps.clock, (signal) => this.#nodeAlone(signal), SHARED);
    this.#pods = new SharedAnswer(deps.clock, (signal) => this.#podsAlone(signal), SHARED);
    this.#cadvisor = new SharedAnswer(deps.clock, (signal) => this.#cadvisorText(signal), SHARED);
  }

  /** Node and pods; rejects when the runtime or the root cgroup cannot be read. */
  summary({ onlyCpuAndMemory = false }: SummaryOptions, signal: AbortSignal): Promise<Summary> {
    return (onlyCpuAndMemory ? this.#reduced : this.#full).get(signal);
  }

  /** Brings the figures up to date where that does not take long; for pages that do not depend on them. */
  async refresh(signal: AbortSignal): Promise<void> {
    try {
      await withDeadline(this.#deps.clock, signal, FRESH_MS, (own) => this.summary({}, own));
    } catch (err) {
      signal.throwIfAborted();
      this.#deps.log.debug('figures of pods are not fresh', { err });
    }
  }

  /** The full summary that was made last, however old. */
  get latest(): Summary | undefined {
    return this.#latest;
  }

  /** The node alone, for eviction: without the filesystems of a runtime that does not answer. */
  node(signal: AbortSignal): Promise<NodeFigures> {
    return this.#node.get(signal);
  }

  /** The pods, for eviction: by their cgroups and files alone where the runtime does not answer in time. */
  pods(signal: AbortSignal): Promise<readonly PodFigures[]> {
    return this.#pods.get(signal);
  }

  /** The pods, for eviction from a disk: the volumes of `candidates` are measured first, as far as time allows. */
  async measuredPods(candidates: readonly Pod[], signal: AbortSignal): Promise<MeasuredPods> {
    const { volumes } = this.#deps;
    await volumes.measureNow(candidates, signal);
    this.#pods.forget();
    const figures = await this.#pods.get(signal);
    return { figures, unmeasured: new Set(candidates.filter((pod) => !volumes.isMeasured(pod)).map(uidOf)) };
  }

  /** Never rejects for a part that cannot be read: that part's scrape error says so. */
  cadvisorMetrics(signal: AbortSignal): Promise<string> {
    return this.#cadvisor.get(signal);
  }

  /** Never rejects but for the caller's own signal: the scrape errors say what went wrong. */
  async resourceMetrics(signal: AbortSignal): Promise<string> {
    const { showHidden = false } = this.#deps;
    try {
      return resourceMetricsText(await this.#reduced.get(signal), showHidden);
    } catch (err) {
      signal.throwIfAborted();
      this.#deps.log.warn('resource metrics could not be gathered', { err });
      return resourceMetricsText(undefined, showHidden);
    }
  }

  async #nodeAlone(signal: AbortSignal): Promise<NodeFigures> {
    const { node, log, onNode } = this.#deps;
    const fromDisk = this.#rootFs(signal);
    const figures = await node.full(undefined, signal, (err) =>
      log.warn('the filesystems of the runtime are not known', { err }),
    );
    const rootFs = await fromDisk;
    const whole = { ...figures, fs: rootFs && wholeFs(rootFs) };
    onNode?.(whole);
    return whole;
  }

  async #podsAlone(signal: AbortSignal): Promise<readonly PodFigures[]> {
    const { pods, sources, clock, log } = this.#deps;
    const fromRuntime = <K, V>(ask: (own: AbortSignal) => Promise<ReadonlyMap<K, V>>): Promise<ReadonlyMap<K, V>> =>
      withDeadline(clock, signal, PATIENCE_MS, ask).catch((err: unknown) => {
        signal.throwIfAborted();
        log.warn('what the runtime says about containers is not known', { err });
        return new Map<K, V>();
      });
    const [rootFs, census, reported, told] = await Promise.all([
      this.#rootFs(signal),
      sources.census(),
      fromRuntime((own) => this.#reported(own)),
      fromRuntime((own) => this.#podStats(own)),
    ]);
    return Promise.all(
      shownPods(sources.snapshots()).map(async (pod) => {
        const full =
          rootFs &&
          this.#patiently(
            signal,
            this.#podFigures(pod, { census, reported, rootFs }, signal),
            'no full figures of a pod',
          );
        const figures = (await full) ?? (await pods.reduced(pod, { census, reported }, signal));
        return withRuntimeFigures(figures, told.get(figures.podRef.uid));
      }),
    );
  }

  /** Nothing where the runtime cannot tell: the cgroups do. */
  async #podStats(signal: AbortSignal): Promise<ReadonlyMap<string, PodSandboxStats>> {
    const { sources, log } = this.#deps;
    try {
      return byPod((await sources.podStats?.(signal)) ?? []);
    } catch (err) {
      if (!isFault(err, 'unimplemented')) throw err;
      log.debug('the runtime has no figures of pods', { err });
      return new Map();
    }
  }

  #rootFs(signal: AbortSignal): Promise<FsCapacity | undefined> {
    return this.#patiently(signal, this.#deps.node.rootFs(), 'the filesystem of the root directory does not answer');
  }

  /** Undefined when a disk does not answer in time. */
  async #patiently<T>(signal: AbortSignal, answer: Promise<T>, otherwise: string): Promise<T | undefined> {
    const { clock, log } = this.#deps;
    return withDeadline(clock, signal, PATIENCE_MS, (own) => abortable(own, answer)).catch((err: unknown) => {
      signal.throwIfAborted();
      if (!isFault(err, 'deadline')) throw err;
      log.warn(otherwise, { err });
      return undefined;
    });
  }

  /** A file or folder of one pod that cannot be read leaves the others as they are. */
  async #podFigures(pod: ShownPod, context: PodsContext, signal: AbortSignal): Promise<PodFigures> {
    const { pods, log } = this.#deps;
    try {
      return await pods.full(pod, context, signal);
    } catch (err) {
      signal.throwIfAborted();
      log.warn('what a pod uses of disks is not known', { pod: `${pod.snapshot.namespace}/${pod.snapshot.name}`, err });
      return await pods.reduced(pod, context, signal);
    }
  }

  async #fullSummary(signal: AbortSignal): Promise<Summary> {
    const { node, sources } = this.#deps;
    const [rootFs, census, reported, told] = await Promise.all([
      node.rootFs(),
      sources.census(),
      this.#reported(signal),
      this.#podStats(signal),
    ]);
    const context = { census, reported, rootFs };
    const [nodeFigures, ...podFigures] = await Promise.all([
      node.full(rootFs, signal),
      ...shownPods(sources.snapshots()).map((pod) => this.#podFigures(pod, context, signal)),
    ]);
    this.#latest = { node: nodeFigures, pods: podFigures.map((p) => withRuntimeFigures(p, told.get(p.podRef.uid))) };
    return this.#latest;
  }

  async #reducedSummary(signal: AbortSignal): Promise<Summary> {
    const { node, pods, sources } = this.#deps;
    const [census, reported, told] = await Promise.all([
      sources.census(),
      this.#reported(signal),
      this.#podStats(signal),
    ]);
    const [nodeFigures, ...podFigures] = await Promise.all([
      node.reduced(signal),
      ...shownPods(sources.snapshots()).map((pod) => pods.reduced(pod, { census, reported }, signal)),
    ]);
    return { node: nodeFigures, pods: podFigures.map((p) => withRuntimeFigures(p, told.get(p.podRef.uid))) };
  }

  async #reported(signal: AbortSignal): Promise<ReadonlyMap<string, ContainerStats>> {
    const stats = await this.#deps.sources.containerStats(signal).catch((err: unknown) => {
      throw new KubeletError(
        'unavailable',
        `failed to list pod stats: failed to list all container stats: ${messageOf(err)}`,
        { cause: err },
      );
    });
    return new Map(stats.flatMap((s) => (s.attributes === undefined ? [] : [[s.attributes.id, s] as const])));
  }

  async #cadvisorText(signal: AbortSignal): Promise<string> {
    const { containers, sources, log } = this.#deps;
    const failed = (err: unknown): undefined => {
      log.warn('container metrics could not be gathered in full', { err });
      return undefined;
    };
    const [disks, machine] = await Promise.all([sources.disks(signal).catch(failed), sources.machine().catch(failed)]);
    const readings = await sources
      .census()
      .then((census) =>
        containers.all(census, sources.snapshots(), disks ?? { filesystems: [], names: new Map() }, signal),
      )
      .catch(failed);
    return cadvisorMetricsText({
      containers: readings,
      machine,
      device: (major, minor) => disks?.names.get(`${major}:${minor}`) ?? '',
    });
  }
}
