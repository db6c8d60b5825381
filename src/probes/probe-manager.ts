// Keeps every probe of every pod on its beat, with one timer. A worker is one probe of one container; it lives from the
// pod's first sync to its end, across restarts of the container.
import { named } from '../lib/by-name.ts';
import { containerId, podUid, type ContainerId, type PodUid } from '../core/ids.ts';
import type { EventRecorder } from '../core/events.ts';
import {
  containerFieldPath,
  isSidecar,
  podKey,
  uidOf,
  type Container,
  type ContainerKind,
  type ContainerStatus,
  type Pod,
  type PodStatus,
  type Probe,
} from '../core/pod.ts';
import { parseTimeMs } from '../core/time.ts';
import { aborted, childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { fullErrorText } from '../lib/grpc/status.ts';
import type { Runnable } from '../lib/supervise.ts';
import { BeatQueue } from './beat-queue.ts';
import { isOlderThanKubelet, viewOf } from './pod-view.ts';
import { ProbeHistory, type ProbeRun } from './probe-history.ts';
import { TITLE, type ProbeMetrics } from './probe-metrics.ts';
import { ProbeResults } from './probe-results.ts';
import {
  askAgainAfterMs,
  decide,
  NEW_WORKER,
  nextBeat,
  PROBE_TYPES,
  settle,
  type ProbeResult,
  type ProbeType,
  type WorkerState,
} from './probe-state.ts';
import { BrokenAnswer, type Answer, type Prober } from './prober.ts';
import { isContainerReady, isStarted, type ProbeFacts } from './readiness.ts';

/** A result that changed. The first one of an instance is `initial`: nothing was asked yet. */
export type ResultChange = {
  readonly uid: PodUid;
  readonly container: string;
  readonly containerId: ContainerId;
  readonly type: ProbeType;
  readonly result: ProbeResult;
  readonly initial: boolean;
};

/** What a container's status says, from what it is seen to be and what was said of it before. */
export type Readiness = (
  status: ContainerStatus,
  old: ContainerStatus | undefined,
) => { readonly ready: boolean; readonly started: boolean };

interface ProbedPods {
  /** The pod as it is wanted now; undefined once forgotten. */
  pod(uid: PodUid): Pod | undefined;
  /** The status last computed for it. */
  status(uid: PodUid): PodStatus | undefined;
  /** When a container started, to the millisecond; without it the status' whole seconds are used. */
  startedAt?(uid: PodUid, id: ContainerId): number | undefined;
}

export type ProbeManagerDeps = {
  readonly pods: ProbedPods;
  /** Usually `probeOnce(probers)`. */
  readonly prober: Prober;
  readonly onResult: (change: ResultChange) => void;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ProbeMetrics;
};

/** What waits for its beat holds no pod. */
type BeatKey = `${PodUid} ${string}`;

type Worker = {
  readonly key: BeatKey;
  readonly pod: Pod;
  readonly uid: PodUid;
  readonly container: Container;
  readonly kind: ContainerKind;
  readonly type: ProbeType;
  readonly probe: Probe;
  readonly periodMs: number;
  readonly history: ProbeHistory;
  /** Of the present run; stopping the worker ends it, or lets it go on unheard. */
  abort: ((reason?: unknown) => void) | undefined;
  state: WorkerState;
  /** The beat that was kept last. */
  beat: number;
  askedAgain: boolean;
  /** The next beat comes early. */
  soonMs: number | undefined;
  stopped: boolean;
};

/** `errored`: as events name it. */
type NoAnswer = { readonly errored: 'failure' | 'unknown'; readonly output: string };

const DEFAULT_PERIOD_SECONDS = 10;
const PROBE_FIELD = { startup: 'startupProbe', readiness: 'readinessProbe', liveness: 'livenessProbe' } as const;

export class ProbeManager implements Runnable {
  readonly name = 'probes';
  readonly results = new ProbeResults();
  readonly #deps: ProbeManagerDeps;
  readonly #queue: BeatQueue<BeatKey>;
  readonly #workers = new Map<PodUid, Map<string, Worker>>();
  readonly #running = new Set<Promise<void>>();
  readonly #bornAt: number;
  readonly #startedAtMs: number;
  #signal: AbortSignal | undefined;

  constructor(deps: ProbeManagerDeps) {
    this.#deps = deps;
    this.#bornAt = deps.clock.monotonic();
    this.#startedAtMs = deps.clock.now();
    this.#queue = new BeatQueue(deps.clock, (key) => this.#dueKey(key));
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    for (const workers of this.#workers.values()) for (const worker of workers.values()) this.#start(worker);
    await aborted(signal);
    this.#queue.stop();
    await Promise.all(this.#running);
  }

  get workerCount(): number {
    let count = 0;
    for (const workers of this.#workers.values()) count += workers.size;
    return count;
  }

  /** Starts the pod's probes. Probes that run already are left alone, also when the pod changed. */
  addPod(pod: Pod): void {
    const uid = uidOf(pod);
    for (const [kind, container] of probedContainers(pod))
      for (const type of PROBE_TYPES) {
        const probe = container[PROBE_FIELD[type]];
        if (probe !== undefined) this.#add({ pod, uid, container, kind, type, probe });
      }
  }

  /** The pod is being stopped: it must not be restarted any more, but readiness is still of interest. */
  stopLivenessAndStartup(uid: PodUid): void {
    for (const worker of this.#of(uid)) if (worker.type !== 'readiness') this.#remove(worker);
  }

  removePod(uid: PodUid): void {
    for (const worker of this.#of(uid)) this.#remove(worker);
  }

  /** Drops the probes of all pods but these. */
  keepOnly(uids: ReadonlySet<PodUid>): void {
    for (const uid of this.#workers.keys()) if (!uids.has(uid)) this.removePod(uid);
  }

  /** Probes readiness now instead of at the next beat; the beat starts anew from here. */
  trigger(uid: PodUid, container: string): void {
    const worker = this.#workers.get(uid)?.get(keyOf(container, 'readiness'));
    if (worker === undefined || this.#signal === undefined) return;
    if (this.#queue.has(worker.key)) {
      worker.beat = this.#deps.clock.monotonic();
      this.#queue.schedule(worker.key, worker.beat);
    } else worker.askedAgain = true;
  }

  /**
   * `started` and `ready` of the pod's containers, as they were seen running. Whether a container has a probe is asked of
   * the spec: after a restart of the agent statuses are written before the probes are added.
   */
  readinessOf(pod: Pod): Readiness {
    const uid = uidOf(pod);
    return (status, old) => {
      const id = containerId(status.containerID?.split('://')[1] ?? '');
      const facts = this.#factsOf(pod, status.name, id, parseTimeMs(status.state.running?.startedAt));
      const isSame = old?.containerID === status.containerID;
      const before = {
        running: status.state.running !== undefined,
        previouslyStarted: isSame && old?.started === true,
        previouslyReady: isSame && old?.ready === true,
      };
      const started = isStarted(before, facts);
      const ready = isContainerReady(before, started, facts);
      if (started && !ready && facts.hasReadinessProbe) this.trigger(uid, status.name);
      return { started, ready };
    };
  }

  #factsOf(pod: Pod, name: string, id: ContainerId, startedAtMs: number): ProbeFacts {
    const container = probedContainer(pod, name);
    return {
      startup: this.results.startup(id),
      readiness: this.results.readiness(id),
      hasStartupProbe: container?.startupProbe !== undefined,
      hasReadinessProbe: container?.readinessProbe !== undefined,
      olderThanKubelet: isOlderThanKubelet(
        this.#deps.pods.startedAt?.(uidOf(pod), id) ?? startedAtMs,
        this.#startedAtMs,
      ),
    };
  }

  /** The recent runs of each of the pod's probes. */
  history(uid: PodUid): readonly { container: string; type: ProbeType; runs: readonly ProbeRun[] }[] {
    return this.#of(uid).map((w) => ({ container: w.container.name, type: w.type, runs: w.history.runs() }));
  }

  #of(uid: PodUid): readonly Worker[] {
    return [...(this.#workers.get(uid)?.values() ?? [])];
  }

  #add(about: Pick<Worker, 'pod' | 'uid' | 'container' | 'kind' | 'type' | 'probe'>): void {
    const key = keyOf(about.container.name, about.type);
    const workers = this.#workers.get(about.uid) ?? new Map<string, Worker>();
    if (workers.has(key)) return;
    const worker: Worker = {
      ...about,
      key: `${about.uid} ${key}`,
      periodMs: periodMsOf(about.probe),
      history: new ProbeHistory(),
      abort: undefined,
      state: NEW_WORKER,
      beat: 0,
      askedAgain: false,
      soonMs: undefined,
      stopped: false,
    };
    workers.set(key, worker);
    this.#workers.set(about.uid, workers);
    if (this.#signal !== undefined) this.#start(worker);
  }

  /** Right after the kubelet's own start the first beats are spread, so that a full node is not probed all at once. */
  #start(worker: Worker): void {
    const { clock } = this.#deps;
    const now = clock.monotonic();
    const delay = worker.periodMs > now - this.#bornAt ? clock.random() * worker.periodMs : 0;
    worker.beat = now + delay;
    this.#queue.schedule(worker.key, worker.beat);
  }

  #remove(worker: Worker): void {
    worker.stopped = true;
    worker.abort?.();
    this.#queue.cancel(worker.key);
    const { containerId: id } = worker.state;
    if (id !== undefined) this.results.remove(worker.type, id);
    this.#deps.metrics.remove(worker.pod, worker.container.name, worker.type);
    const workers = this.#workers.get(worker.uid);
    workers?.delete(keyOf(worker.container.name, worker.type));
    if (workers?.size === 0) this.#workers.delete(worker.uid);
  }

  #dueKey(key: BeatKey): void {
    const space = key.indexOf(' ');
    const worker = this.#workers.get(podUid(key.slice(0, space)))?.get(key.slice(space + 1));
    if (worker !== undefined) this.#due(worker);
  }

  #due(worker: Worker): void {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    const run = this.#beat(worker, signal)
      .catch((err: unknown) => {
        if (!signal.aborted)
          this.#deps.log.error('probe worker failed', {
            pod: podKey(worker.pod),
            container: worker.container.name,
            err,
          });
      })
      .finally(() => {
        this.#running.delete(run);
        if (!worker.stopped && !signal.aborted) this.#again(worker);
      });
    this.#running.add(run);
  }

  #again(worker: Worker): void {
    const now = this.#deps.clock.monotonic();
    const early = worker.askedAgain ? now : worker.soonMs === undefined ? undefined : now + worker.soonMs;
    const next = early === undefined ? nextBeat(worker.beat, worker.periodMs, now) : { beat: early, at: early };
    worker.askedAgain = false;
    worker.soonMs = undefined;
    worker.beat = next.beat;
    this.#queue.schedule(worker.key, next.at);
  }

  async #beat(worker: Worker, signal: AbortSignal): Promise<void> {
    const { pods, clock } = this.#deps;
    const pod = pods.pod(worker.uid) ?? worker.pod;
    const status = pods.status(worker.uid);
    const options = {
      kubeletStartedMs: this.#startedAtMs,
      startedAt: (id: string) => pods.startedAt?.(worker.uid, containerId(id)),
    };
    const view = status === undefined ? undefined : viewOf(pod, worker.container, status, options);
    const decision = decide(worker.type, worker.probe, worker.state, view, clock.now());
    worker.state = decision.state;
    if (decision.forget !== undefined) this.results.remove(worker.type, decision.forget);
    if (decision.publish !== undefined) this.#publish(worker, decision.publish, decision.initial === true);
    if (decision.next === 'exit') this.#remove(worker);
    if (decision.next !== 'probe') return;
    const startedAtMs = view?.container?.startedAtMs ?? 0;
    await this.#probe(worker, { pod, podIp: status?.podIP ?? '', startedAtMs }, signal);
  }

  async #probe(
    worker: Worker,
    { pod, podIp, startedAtMs }: { readonly pod: Pod; readonly podIp: string; readonly startedAtMs: number },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, metrics } = this.#deps;
    const { containerId: id = '' } = worker.state;
    const atMs = clock.now();
    const start = clock.monotonic();
    const answer = await this.#ask(worker, pod, podIp, id, signal);
    if (worker.stopped) return;
    const tookMs = clock.monotonic() - start;
    if (answer === undefined) return;
    if ('errored' in answer) {
      const { errored, output } = answer;
      worker.history.add({ atMs, tookMs, result: 'unknown', output });
      worker.soonMs = askAgainAfterMs(worker.type, worker.probe, startedAtMs, atMs);
      if (worker.soonMs === undefined)
        this.#tell(worker, pod, 'Unhealthy', `probe errored and resulted in ${errored} state: ${output}`);
      return;
    }
    const result = answer.result === 'failure' ? 'failure' : 'success';
    worker.history.add({ atMs, tookMs, result, output: answer.output });
    if (result === 'failure') {
      worker.soonMs = askAgainAfterMs(worker.type, worker.probe, startedAtMs, atMs);
      if (worker.soonMs !== undefined) return;
      this.#tell(worker, pod, 'Unhealthy', `probe failed: ${answer.output}`);
    }
    if (answer.result === 'warning') this.#tell(worker, pod, 'ProbeWarning', `probe warning: ${answer.output}`);
    metrics.count(pod, worker.container.name, worker.type, result === 'success' ? 'successful' : 'failed', tookMs);
    const settled = settle(worker.type, worker.probe, worker.state, result);
    worker.state = settled.state;
    if (settled.publish !== undefined) this.#publish(worker, settled.publish, false);
  }

  /** The answer, or why there is none; nothing when the worker was stopped meanwhile. */
  async #ask(
    worker: Worker,
    pod: Pod,
    podIp: string,
    id: string,
    signal: AbortSignal,
  ): Promise<Answer | NoAnswer | undefined> {
    const { prober, log } = this.#deps;
    const { probe, container } = worker;
    const scope = childScope(signal);
    worker.abort = scope.abort;
    try {
      const timeoutMs = (probe.timeoutSeconds || 1) * 1000;
      return await prober({ probe, container, containerId: id, podIp, timeoutMs, life: signal }, scope.signal);
    } catch (err) {
      if (scope.signal.aborted) return undefined;
      log.warn('probe errored', { probe: worker.type, pod: podKey(pod), container: container.name, err });
      return { errored: err instanceof BrokenAnswer ? 'failure' : 'unknown', output: fullErrorText(err) };
    } finally {
      worker.abort = undefined;
      scope.release();
    }
  }

  #tell(worker: Worker, pod: Pod, reason: string, text: string): void {
    const fieldPath = containerFieldPath(worker.kind, worker.container.name);
    this.#deps.events.pod(pod, 'Warning', reason, `${TITLE[worker.type]} ${text}`, { fieldPath });
  }

  #publish(worker: Worker, result: ProbeResult, initial: boolean): void {
    const id = containerId(worker.state.containerId ?? '');
    if (!this.results.set(worker.type, id, result)) return;
    const { uid, type } = worker;
    this.#deps.onResult({ uid, container: worker.container.name, containerId: id, type, result, initial });
  }
}

/** All probes share one queue: a period that is no time must not get into it. */
function periodMsOf({ periodSeconds = 0 }: Probe): number {
  return (Number.isFinite(periodSeconds) && periodSeconds > 0 ? periodSeconds : DEFAULT_PERIOD_SECONDS) * 1000;
}

const keyOf = (container: string, type: ProbeType): string => `${type}/${container}`;

function probedContainer({ spec }: Pod, name: string): Container | undefined {
  const init = named(spec.initContainers ?? [], name);
  return init !== undefined && isSidecar(init) ? init : named(spec.containers, name);
}

/** Main containers and sidecars; other init containers have no probes. */
function* probedContainers(pod: Pod): Iterable<readonly [ContainerKind, Container]> {
  for (const container of pod.spec.initContainers ?? []) if (isSidecar(container)) yield ['init', container];
  for (const container of pod.spec.containers) yield ['main', container];
}
