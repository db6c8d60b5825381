// Keeps the pod cache true: runtime events are hints that cause the read of one pod; full relists are the net below,
// slow while events flow and relists find nothing new, once a second while there are none. Knows when it last saw the runtime.
import { PodSandboxState } from '../cri/gen/cri.ts';
import { subscribeContainerd } from '../cri/containerd-events.ts';
import type { CriRuntime } from '../cri/services.ts';
import { formatDurationMs } from '../core/duration.ts';
import { childScope, withDeadline, type Scope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { GrpcChannel } from '../lib/grpc/channel.ts';
import type { Logger } from '../lib/logger.ts';
import { DEFAULT_BUCKETS, type Gauge, type Histogram, type Registry } from '../lib/metrics.ts';
import type { Runnable } from '../lib/supervise.ts';
import { HintFollower, type Listed } from './hints.ts';
import { PodCache } from './pod-cache.ts';
import { RuntimeEvents, type StreamKind } from './runtime-events.ts';
import { POD_UID } from '../core/runtime-labels.ts';
import { observedState } from './snapshot-of.ts';

export type ObserverDeps = {
  readonly runtime: CriRuntime;
  /** Where containerd's own events are asked for. */
  readonly channel: GrpcChannel;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
};

export type ObserverOptions = {
  /** Between relists while there is no event stream. */
  readonly withoutEventsMs?: number;
  /** Between relists while events flow: the shortest and, when relists find nothing, the longest wait. */
  readonly idleMs?: number;
  readonly idleMaxMs?: number;
  readonly readDeadlineMs?: number;
  /** Told when the event stream opens or ends: a good moment to ask how the runtime is. */
  readonly onStream?: (live: boolean) => void;
};

const UNHEALTHY_AFTER_MS = 3 * 60_000;
/** A list that hangs is asked for again long before the node counts as unhealthy. */
const RELIST_DEADLINE_MS = 30_000;
/** Events between the subscription's request and its start are lost: look once more when it must have begun. */
const SECOND_LOOK_MS = 1000;

export class Observer implements Runnable {
  readonly name = 'observe';
  readonly cache: PodCache;
  readonly #deps: ObserverDeps;
  readonly #o: Required<Omit<ObserverOptions, 'readDeadlineMs'>>;
  readonly #events: RuntimeEvents;
  readonly #hints: HintFollower;
  readonly #metrics: RelistMetrics;
  readonly #onOom = new Set<() => void>();
  #signal = AbortSignal.abort();
  #live = false;
  #periodMs: number;
  #nap: Scope | undefined;
  #wanted = false;
  #lastOk: number | undefined;
  #failing = false;

  constructor(deps: ObserverDeps, options: ObserverOptions = {}) {
    this.#deps = deps;
    this.#o = {
      withoutEventsMs: options.withoutEventsMs ?? 1000,
      idleMs: options.idleMs ?? 10_000,
      idleMaxMs: options.idleMaxMs ?? 60_000,
      onStream: options.onStream ?? (() => undefined),
    };
    this.#periodMs = this.#o.idleMs;
    this.#metrics = relistMetrics(deps.registry);
    const { runtime, channel, clock, log } = deps;
    this.cache = new PodCache(
      { runtime, clock, log },
      {
        onRead: (ms) => this.#metrics.podRelist.observe(ms / 1000),
        ...(options.readDeadlineMs === undefined ? {} : { readDeadlineMs: options.readDeadlineMs }),
      },
    );
    this.#hints = new HintFollower({ clock, log, cache: this.cache, look: (id, s) => this.#look(id, s) });
    this.#events = new RuntimeEvents({
      sources: {
        criEvents: (onEvent, signal) => runtime.containerEvents(onEvent, signal),
        containerdEvents: (onEvent, signal) => subscribeContainerd(channel, onEvent, signal),
      },
      clock,
      log,
      metrics: eventMetrics(deps.registry),
      onHint: (hint) => this.#hints.follow(hint, this.#signal),
      onOom: () => this.#onOom.forEach((listener) => listener()),
      onStream: (live) => this.#onStream(live),
    });
  }

  /** Calls back when the runtime tells of a kill for memory, which not all runtimes do. */
  onOom(listener: () => void): void {
    this.#onOom.add(listener);
  }

  /** Which event stream is open. */
  get stream(): StreamKind {
    return this.#events.kind;
  }

  /** Why the node is not to be trusted with pods, or undefined: the runtime's lists could not be read for too long. */
  unhealthy(): string | undefined {
    if (this.#lastOk === undefined) return 'PLEG is not healthy: pleg has yet to be successful';
    const agoMs = this.#deps.clock.monotonic() - this.#lastOk;
    if (agoMs <= UNHEALTHY_AFTER_MS) return undefined;
    return `PLEG is not healthy: pleg was last seen active ${formatDurationMs(agoMs)} ago; threshold is ${formatDurationMs(UNHEALTHY_AFTER_MS)}`;
  }

  /** Asks for a full relist now, for instance because the runtime came back. */
  relistSoon(): void {
    this.#wanted = true;
    this.#nap?.abort();
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    try {
      await Promise.all([this.#events.run(signal), this.#relistLoop(signal)]);
    } finally {
      this.cache.close();
      await this.#hints.idle();
    }
  }

  async #relistLoop(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    let lastBegun: number | undefined;
    while (!signal.aborted) {
      this.#wanted = false;
      const begun = clock.monotonic();
      if (lastBegun !== undefined) this.#metrics.interval.observe((begun - lastBegun) / 1000);
      lastBegun = begun;
      await this.#relist(signal);
      await this.#pause(signal);
    }
  }

  async #relist(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const begun = clock.monotonic();
    try {
      const changed = await withDeadline(clock, signal, RELIST_DEADLINE_MS, (s) => this.cache.relist(s));
      this.#lastOk = clock.monotonic();
      this.#metrics.lastSeen.set(clock.now() / 1000);
      this.#metrics.duration.observe((clock.monotonic() - begun) / 1000);
      // Changes that no event told of: the stream may be shared or sick, so look more often for a while.
      this.#periodMs = changed > 0 ? this.#o.withoutEventsMs : Math.min(this.#periodMs * 2, this.#o.idleMaxMs);
      if (this.#failing) log.info('the runtime can be listed again');
      this.#failing = false;
    } catch (err) {
      if (signal.aborted) return;
      if (!this.#failing) log.error('the runtime cannot be listed', { err });
      this.#failing = true;
    }
  }

  async #pause(signal: AbortSignal): Promise<void> {
    if (this.#wanted) return;
    const ms = this.#live && !this.#failing ? this.#periodMs : this.#o.withoutEventsMs;
    const nap = childScope(signal);
    this.#nap = nap;
    try {
      await this.#deps.clock.sleep(ms, nap.signal);
    } finally {
      this.#nap = undefined;
      nap.release();
    }
  }

  #onStream(live: boolean): void {
    this.#live = live;
    this.#periodMs = this.#o.idleMs;
    this.relistSoon();
    this.#o.onStream(live);
    if (!live) return;
    void this.#deps.clock.sleep(SECOND_LOOK_MS, this.#signal).then(() => {
      if (!this.#signal.aborted) this.relistSoon();
    });
  }

  async #look(id: string, signal: AbortSignal): Promise<Listed | undefined> {
    const { runtime } = this.#deps;
    const { containers } = await runtime.listContainers({ filter: { id } }, signal);
    const container = containers[0];
    if (container !== undefined) return { uid: container.labels[POD_UID] ?? '', state: observedState(container.state) };
    const { items } = await runtime.listPodSandbox({ filter: { id } }, signal);
    const sandbox = items[0];
    if (sandbox === undefined) return undefined;
    const ready = sandbox.state === PodSandboxState.SANDBOX_READY;
    return { uid: sandbox.metadata?.uid ?? '', state: ready ? 'running' : 'exited' };
  }
}

type RelistMetrics = {
  readonly duration: Histogram;
  readonly interval: Histogram;
  readonly podRelist: Histogram;
  readonly lastSeen: Gauge;
};

function relistMetrics(registry: Registry): RelistMetrics {
  // Nothing is ever discarded here; the family is there because dashboards ask for it.
  registry.counter('kubelet_pleg_discard_events', '[ALPHA] The number of discard events in PLEG.');
  const histogram = (name: string, help: string): Histogram => registry.histogram(name, help, [], DEFAULT_BUCKETS);
  return {
    duration: histogram(
      'kubelet_pleg_relist_duration_seconds',
      '[ALPHA] Duration in seconds for relisting pods in PLEG.',
    ),
    interval: histogram(
      'kubelet_pleg_relist_interval_seconds',
      '[ALPHA] Interval in seconds between relisting in PLEG.',
    ),
    podRelist: histogram(
      'kubelet_pleg_pod_relist_duration_seconds',
      '[ALPHA] Duration in seconds for relisting a single pod in PLEG.',
    ),
    lastSeen: registry.gauge(
      'kubelet_pleg_last_seen_seconds',
      '[ALPHA] Timestamp in seconds when PLEG was last seen active.',
    ),
  };
}

const eventMetrics = (registry: Registry) => ({
  errors: registry.counter(
    'kubelet_evented_pleg_connection_error_count',
    '[ALPHA] The number of errors encountered during the establishment of streaming connection with the CRI runtime.',
  ),
  successes: registry.counter(
    'kubelet_evented_pleg_connection_success_count',
    '[ALPHA] The number of times a streaming client was obtained to receive CRI Events.',
  ),
  latency: registry.histogram(
    'kubelet_evented_pleg_connection_latency_seconds',
    '[ALPHA] The latency of streaming connection with the CRI runtime, measured in seconds.',
  ),
});
