// The answers of the page, put together from the ports when somebody asks.
import { availableParallelism, totalmem } from 'node:os';
import { uidOf, namespaceOf, podKey, type Pod } from '../core/pod.ts';
import type { WorkerView as WorkerFacts } from '../pods/pod-workers.ts';
import type { NodeFigures, PodFigures } from '../stats/summary-types.ts';
import { LastKnown } from './last-known.ts';
import type { Waterfall } from '../trace/waterfall.ts';
import { readyView } from './node-ready.ts';
import type {
  ImagesView,
  LatencyView,
  NowView,
  PodRow,
  PodsView,
  PodView,
  TimelineView,
  WaterfallView,
  WorkersView,
  WorkerView,
} from './model.ts';
import { nodeUse } from './node-use.ts';
import {
  compared,
  conditionViews,
  containerViews,
  eventViews,
  probeViews,
  volumeViews,
  goodOfPod,
} from './pod-details.ts';
import { countPods, explainedRow, podRow, type Use } from './pod-row.ts';
import type { PagePorts } from './ports.ts';
import { pullViews } from './pull-views.ts';
import { specText } from './spec-text.ts';

/** Figures of pods cost something for each of them: they are read as seldom as the node is full. */
const FIGURES_MS = { least: 5000, perPod: 120, most: 60_000 };
const SLOWEST = 5;
const SECOND_MS = 1000;

type KnownRow = { readonly figures: PodFigures | undefined; readonly row: PodRow };

export class PageViews {
  readonly #ports: PagePorts;
  readonly #write: boolean;
  readonly #nodeFigures: LastKnown<NodeFigures>;
  readonly #podFigures: LastKnown<ReadonlyMap<string, PodFigures>>;
  #figures: ReadonlyMap<string, PodFigures> = new Map();
  /** Rows by the pod's object, which every change replaces: a row goes with its pod. */
  readonly #known = new WeakMap<Pod, KnownRow>();

  constructor(ports: PagePorts, options: { readonly write: boolean }) {
    this.#ports = ports;
    this.#write = options.write;
    const { node } = ports;
    this.#nodeFigures = new LastKnown(ports, (signal) => node.figures(signal));
    this.#podFigures = new LastKnown(ports, async (signal) => {
      const { pods } = await node.summary(signal);
      return new Map(pods.map((p) => [p.podRef.uid, p]));
    });
  }

  async now(delayMs: NowView['agent']['delayMs'], signal: AbortSignal): Promise<NowView> {
    const { clock, records, facts, pods, node, images, problems } = this.#ports;
    const figures = await this.#nodeFigures.get(0, signal);
    const known = facts();
    const memory = process.memoryUsage();
    const api = known.standalone ? undefined : records.calls.latency('api');
    return {
      atMs: clock.now(),
      node: { ...known, write: this.#write, cpus: availableParallelism(), memoryBytes: totalmem() },
      ready: readyView(node.node()?.status?.conditions, node.runtimeErrors(), node.signals()),
      conditions: conditionViews(node.node()?.status?.conditions ?? [], (type) =>
        type === 'Ready' ? 'True' : 'False',
      ),
      signals: node.signals(),
      use: nodeUse(figures),
      pods: countPods(this.#rows(), pods.max),
      agent: {
        pid: process.pid,
        rssBytes: memory.rss,
        heapBytes: memory.heapUsed,
        uptimeMs: Math.round(clock.monotonic()),
        ...records.history.agent(),
        ...(delayMs === undefined ? {} : { delayMs }),
      },
      latency: {
        runtime: records.calls.latency('runtime'),
        ...(api === undefined ? {} : { api: api satisfies LatencyView }),
      },
      pulls: pullViews(images.pulls()),
      problems: problems().length,
      slowest: this.#slowest(),
      history: records.history.view(),
    };
  }

  async pods(signal: AbortSignal): Promise<PodsView> {
    await this.#refreshFigures(signal);
    return { atMs: this.#ports.clock.now(), pods: this.#rows() };
  }

  /** Only those rows, with the figures at hand. */
  rowsOf(uids: ReadonlySet<string>): readonly PodRow[] {
    return this.#ports.pods
      .all()
      .filter((pod) => uids.has(uidOf(pod)))
      .map((pod) => this.#row(pod));
  }

  async pod(namespace: string, name: string, signal: AbortSignal): Promise<PodView | undefined> {
    const { clock, pods, pod: about } = this.#ports;
    const pod = pods.byName(namespace, name);
    if (pod === undefined) return undefined;
    const uid = uidOf(pod);
    const [cgroup] = await Promise.all([about.cgroup(uid, signal).catch(() => []), this.#refreshFigures(signal)]);
    const figures = this.#figures.get(uid);
    const probes = about.probes(uid);
    const worker = this.#ports.workers().find((w) => w.uid === uid);
    return {
      atMs: clock.now(),
      row: this.#row(pod),
      conditions: conditionViews(pod.status?.conditions ?? [], goodOfPod),
      waterfalls: this.#waterfalls(pod),
      containers: containerViews(pod, (container) => useOf(figures?.containers.find((c) => c.name === container))),
      probes: probeViews(
        pod,
        (container, type) => probes.find((p) => p.container === container && p.type === type)?.runs ?? [],
      ),
      volumes: volumeViews(pod, {
        mounted: new Set(about.mounts(uid)),
        waiting: this.#waitingVolumes(uid),
        use: new Map((figures?.volume ?? []).map((v) => [v.name, defined(v)])),
      }),
      events: eventViews(about.events(uid)),
      compared: compared(pod, about.observed(uid)),
      cgroup,
      spec: specText(pod),
      ...(worker === undefined ? {} : { worker: this.#worker(worker) }),
    };
  }

  images(): ImagesView {
    const { clock, images, records } = this.#ports;
    const order = new Map(images.collectOrder().map((id, i) => [id, i + 1]));
    const users = this.#imageUsers();
    const disk = records.history.imageFs();
    return {
      atMs: clock.now(),
      pulls: pullViews(images.pulls()),
      images: images.list().map((image) => {
        const at = order.get(image.id);
        const names = [...image.repoTags, ...image.repoDigests];
        return {
          id: image.id,
          names,
          sizeBytes: image.size,
          pinned: image.pinned,
          usedBy: [...new Set([image.id, ...names].flatMap((n) => users.get(n) ?? []))],
          ...(at === undefined ? {} : { collectOrder: at }),
        };
      }),
      ...(disk === undefined ? {} : { disk: { ...disk, ...images.thresholds() } }),
    };
  }

  timeline(): TimelineView {
    const { clock, records } = this.#ports;
    return { atMs: clock.now(), entries: records.timeline.entries() };
  }

  workers(): WorkersView {
    const { clock, records, workers, problems } = this.#ports;
    return {
      atMs: clock.now(),
      workers: workers().map((w) => this.#worker(w)),
      calls: records.calls.inFlight(),
      problems: problems(),
    };
  }

  /** How long the figures of pods are good for, by how many there are. */
  get figuresMs(): number {
    const { least, perPod, most } = FIGURES_MS;
    return Math.min(most, Math.max(least, perPod * this.#ports.pods.all().length));
  }

  async #refreshFigures(signal: AbortSignal): Promise<void> {
    this.#figures = (await this.#podFigures.get(this.figuresMs, signal)) ?? new Map();
  }

  #rows(): readonly PodRow[] {
    return this.#ports.pods.all().map((pod) => this.#row(pod));
  }

  /** The known row of an unchanged pod without an explanation: explanations count seconds, rows do not. */
  #row(pod: Pod): PodRow {
    const figures = this.#figures.get(uidOf(pod));
    const known = this.#known.get(pod);
    if (known !== undefined && known.figures === figures) return known.row;
    const row = this.#explained(pod, podRow(pod, useOf(figures)));
    if (row.why === undefined && row.state !== 'Terminating') this.#known.set(pod, { figures, row });
    else this.#known.delete(pod);
    return row;
  }

  /** Who is well needs no explanation. */
  #explained(pod: Pod, row: PodRow): PodRow {
    if (row.tone === 'ok' || row.tone === 'idle') return row;
    return explainedRow(row, this.#ports.pod.why(pod));
  }

  #slowest(): NowView['slowest'] {
    return this.#ports.pod
      .waterfalls()
      .filter((w) => w.kind === 'start' && w.tookMs !== undefined)
      .sort((a, b) => (b.tookMs ?? 0) - (a.tookMs ?? 0))
      .slice(0, SLOWEST)
      .map(({ namespace, name, tookMs = 0 }) => ({ namespace, name, tookMs }));
  }

  #waterfalls(pod: Pod): PodView['waterfalls'] {
    const its = this.#ports.pod
      .waterfalls()
      .filter((w) => w.namespace === namespaceOf(pod) && w.name === pod.metadata.name);
    return (['start', 'stop'] as const).flatMap((kind) => {
      const ofKind = its.filter((w) => w.kind === kind);
      const [last, before] = [ofKind.at(-1), ofKind.at(-2)];
      if (last === undefined) return [];
      return [{ now: waterfallView(last), ...(before === undefined ? {} : { before: waterfallView(before) }) }];
    });
  }

  #worker(facts: WorkerFacts): WorkerView {
    const { uid, pod, phase, busySinceMs, nextRunMs, lastError } = facts;
    const waits = busySinceMs !== undefined ? this.#waitsFor(uid) : undefined;
    return {
      uid,
      pod: pod === undefined ? uid : podKey(pod),
      phase,
      busy: busySinceMs !== undefined,
      ...(busySinceMs === undefined ? {} : { sinceMs: Math.round(busySinceMs) }),
      ...waits,
      ...(nextRunMs === undefined ? {} : { nextMs: Math.round(nextRunMs / SECOND_MS) * SECOND_MS }),
      ...(lastError === undefined ? {} : { lastError: lastError.message }),
    };
  }

  /** What each volume that is not there waits for. */
  #waitingVolumes(uid: WorkerFacts['uid']): ReadonlyMap<string, string> {
    const clauses = this.#ports.pod.volumeComplaints(uid).map((text) => /^volume "([^"]*)": (.*)$/s.exec(text));
    return new Map(clauses.flatMap((found) => (found === null ? [] : [[found[1] ?? '', found[2] ?? ''] as const])));
  }

  /** The innermost piece of a start or stop that is not over. */
  #waitsFor(uid: WorkerFacts['uid']): { waitsFor: string; waitsSinceMs?: number } | undefined {
    const { pod } = this.#ports;
    const [volume] = this.#waitingVolumes(uid);
    const open = pod.waterfalls().findLast((w) => w.uid === uid && w.tookMs === undefined);
    const span = open?.spans.findLast((s) => s.toMs === undefined);
    if (open === undefined || span === undefined)
      return volume === undefined ? undefined : { waitsFor: `volume ${volume[0]}: ${volume[1]}` };
    const detail = span.name === 'volumes' && volume !== undefined ? `: ${volume[1]}` : '';
    const about = span.of === undefined ? '' : ` ${span.of}`;
    return { waitsFor: `${span.name}${about}${detail}`, waitsSinceMs: open.startedAtMs + span.fromMs };
  }

  /** Which pods use which image, by all names it may have. */
  #imageUsers(): ReadonlyMap<string, readonly string[]> {
    const users = new Map<string, string[]>();
    const add = (image: string, pod: string): void => {
      const known = users.get(image) ?? [];
      if (image !== '' && !known.includes(pod)) users.set(image, [...known, pod]);
    };
    for (const pod of this.#ports.pods.all()) {
      const snapshot = this.#ports.pod.observed(uidOf(pod));
      for (const c of snapshot?.containers ?? []) for (const n of [c.imageId, c.imageRef, c.image]) add(n, podKey(pod));
    }
    return users;
  }
}

const waterfallView = ({ kind, startedAtMs, tookMs, spans }: Waterfall): WaterfallView => ({
  kind,
  startedAtMs,
  ...(tookMs === undefined ? {} : { tookMs }),
  spans,
});

const useOf = (figures: Pick<PodFigures, 'cpu' | 'memory'> | undefined): Use | undefined =>
  figures === undefined
    ? undefined
    : {
        ...(figures.cpu?.usageNanoCores === undefined ? {} : { cpuCores: figures.cpu.usageNanoCores / 1e9 }),
        ...(figures.memory?.workingSetBytes === undefined ? {} : { memoryBytes: figures.memory.workingSetBytes }),
      };

const defined = ({
  usedBytes,
  capacityBytes,
}: {
  usedBytes: number | undefined;
  capacityBytes: number | undefined;
}) => ({
  ...(usedBytes === undefined ? {} : { usedBytes }),
  ...(capacityBytes === undefined ? {} : { capacityBytes }),
});
