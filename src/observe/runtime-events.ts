// Keeps one stream of runtime events open and turns each event into a hint: "look at this container". CRI events where
// the runtime has them, containerd's own where it has not; without either, `live` stays false and relists do the work.
import { ContainerEventType, type ContainerEventResponse } from '../cri/gen/cri.ts';
import type { ContainerdEvent } from '../cri/containerd-events.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Counter, Histogram } from '../lib/metrics.ts';

/** What the container (or sandbox) must look like once the runtime's own records have caught up with the event. */
export type Expectation = 'started' | 'stopped' | 'gone' | 'any';
export type Hint = {
  readonly id: string;
  /** Empty when the event does not say. */
  readonly podUid: string;
  readonly expect: Expectation;
};

export interface EventSources {
  criEvents(onEvent: (event: ContainerEventResponse) => void, signal: AbortSignal): Promise<void>;
  containerdEvents(onEvent: (event: ContainerdEvent) => void, signal: AbortSignal): Promise<void>;
}

export type EventMetrics = { readonly errors: Counter; readonly successes: Counter; readonly latency: Histogram };

export type RuntimeEventsDeps = {
  readonly sources: EventSources;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: EventMetrics;
  readonly onHint: (hint: Hint) => void;
  /** Something in a container was killed for memory; the container may live on. Only containerd's own events tell. */
  readonly onOom: () => void;
  /** A stream was opened (events before it are lost) or ended. */
  readonly onStream: (live: boolean) => void;
};

export type StreamKind = 'cri' | 'containerd' | 'none';

const RECONNECT = { baseMs: 100, maxMs: 3000 };
/** A runtime without any events may be replaced by one that has them. */
const ASK_AGAIN_MS = 60_000;
const ACCEPTED_MS = 1000;
/** CRI-O with its events switched off (as they are by default) accepts the stream and ends it at once, without a word. */
const EMPTY_STREAMS = 2;
/** Between the stamp of an event and our own clock. */
const CLOCK_SLACK_MS = 1000;
/** A stream that lasts this long was a good one. */
const SETTLED_MS = 5000;

export class RuntimeEvents {
  readonly #deps: RuntimeEventsDeps;
  #kind: StreamKind = 'none';
  /** Whether the stream has brought an event. */
  #reported = false;
  /** Monotonic. */
  #openedAt = 0;

  constructor(deps: RuntimeEventsDeps) {
    this.#deps = deps;
  }

  /** Which stream is open right now. */
  get kind(): StreamKind {
    return this.#kind;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, metrics } = this.#deps;
    const backoff = new Backoff(RECONNECT);
    let emptyInARow = 0;
    while (!signal.aborted) {
      const begun = clock.monotonic();
      let waitMs: number;
      this.#reported = false;
      try {
        await this.#stream(signal);
        const empty = !this.#reported && clock.monotonic() - begun < ACCEPTED_MS;
        emptyInARow = empty ? emptyInARow + 1 : 0;
        waitMs = emptyInARow > EMPTY_STREAMS ? ASK_AGAIN_MS : backoff.failed(clock.monotonic());
      } catch (err) {
        if (signal.aborted) return;
        if (isFault(err, 'unimplemented')) {
          log.debug('the runtime has no event stream', { err });
          waitMs = ASK_AGAIN_MS;
        } else {
          metrics.errors.inc();
          log.debug('runtime event stream broke', { err });
          if (clock.monotonic() - begun > SETTLED_MS) backoff.succeeded();
          waitMs = backoff.failed(clock.monotonic());
        }
      }
      await clock.sleep(waitMs, signal);
    }
  }

  /** CRI events, else containerd's; rejects with `unimplemented` only when there are neither. */
  async #stream(signal: AbortSignal): Promise<void> {
    const { sources } = this.#deps;
    try {
      await this.#live('cri', () => sources.criEvents((e) => this.#onCriEvent(e), signal));
    } catch (err) {
      if (!isFault(err, 'unimplemented')) throw err;
      await this.#live('containerd', () => sources.containerdEvents((e) => this.#onContainerdEvent(e), signal));
    }
  }

  async #live(kind: StreamKind, open: () => Promise<void>): Promise<void> {
    const { clock, onStream, metrics } = this.#deps;
    this.#openedAt = clock.monotonic();
    const ended = open();
    this.#kind = kind;
    // A refused stream ends at once; nothing else tells that it was accepted.
    const accepted = clock.after(ACCEPTED_MS, () => metrics.successes.inc());
    onStream(true);
    try {
      await ended;
    } finally {
      accepted.cancel();
      this.#kind = 'none';
      onStream(false);
    }
  }

  #onCriEvent(event: ContainerEventResponse): void {
    const { clock, metrics, onHint } = this.#deps;
    this.#reported = true;
    // Not when it was by the clock of then: that may have been set since the stream was opened.
    const agoMs = event.createdAt === 0n ? 0 : clock.now() - Number(event.createdAt / 1_000_000n);
    // CRI-O keeps events for its first client, hundreds maybe. The read that follows the opening has seen all of it.
    if (agoMs > clock.monotonic() - this.#openedAt + CLOCK_SLACK_MS) return;
    metrics.latency.observe(Math.max(0, agoMs) / 1000);
    // Whoever created it starts it as well, and that is told too.
    if (event.containerEventType === ContainerEventType.CONTAINER_CREATED_EVENT) return;
    const podUid = event.podSandboxStatus?.metadata?.uid ?? '';
    onHint({ id: event.containerId, podUid, expect: CRI_EXPECT[event.containerEventType] ?? 'any' });
  }

  #onContainerdEvent(event: ContainerdEvent): void {
    if (event.topic === '/tasks/oom') this.#deps.onOom();
    this.#deps.onHint({ id: event.containerId, podUid: '', expect: CONTAINERD_EXPECT[event.topic] ?? 'any' });
  }
}

const CRI_EXPECT: Readonly<Partial<Record<ContainerEventType, Expectation>>> = {
  [ContainerEventType.CONTAINER_STARTED_EVENT]: 'started',
  [ContainerEventType.CONTAINER_STOPPED_EVENT]: 'stopped',
  [ContainerEventType.CONTAINER_DELETED_EVENT]: 'gone',
};

const CONTAINERD_EXPECT: Readonly<Record<string, Expectation>> = {
  '/tasks/start': 'started',
  '/tasks/exit': 'stopped',
  '/tasks/delete': 'stopped',
  '/containers/delete': 'gone',
};
