// The event recorder: never throws, never blocks. Events go into the local ring at once and, where there is an API
// server, through correlation into a queue that one sender empties in order. An outage keeps the queue, not the callers.
// While pods queue up to start, good news of them can wait a little: the starts come first.
import { hash } from 'node:crypto';
import type { EventRecorder, EventType } from '../core/events.ts';
import type { KubeEvent } from '../core/node.ts';
import type { KubeObject } from '../core/meta.ts';
import { dns1123Subdomain } from '../core/names.ts';
import type { Pod } from '../core/pod.ts';
import { apiTime } from '../core/time.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { QuietWait, type Quiet } from '../lib/quiet-wait.ts';
import type { Runnable } from '../lib/supervise.ts';
import { EventCorrelator, type Sent } from './event-correlator.ts';
import { EventRing } from './event-ring.ts';
import { EVENTS, type Resource, type Where } from './resources.ts';

export interface EventClient {
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
  patch<T>(
    resource: Resource<T>,
    where: Where & { readonly name: string },
    body: object,
    signal: AbortSignal,
  ): Promise<T>;
}

export type EventDeps = {
  /** Absent in standalone mode: the ring is all there is. */
  client?: EventClient;
  clock: Clock;
  log: Logger;
  /** Told about every event as it happens (the node page's live view). */
  onEvent?: (event: KubeEvent) => void;
  starts?: PodStarts;
};

export type PodStarts = {
  /** Pods wait for others to start before them. */
  readonly crowded: () => boolean;
  readonly quiet: Quiet;
};

type Queued = { readonly key: string; readonly event: KubeEvent; readonly previous?: Sent; readonly atMs: number };

const MAX_QUEUE = 1000;
/** Of all messages in the queue. */
const MAX_QUEUE_CHARACTERS = 2 * 1024 * 1024;
/** API servers keep events for an hour; older ones are of no use to anybody there. */
const MAX_AGE_MS = 3_600_000;
/** How long good news waits for a crowd of pods to start. */
const CROWD_MS = 5000;

export class ApiEventRecorder implements EventRecorder, Runnable {
  readonly name = 'events';
  readonly ring = new EventRing();
  readonly #deps: EventDeps;
  readonly #nodeName: string;
  readonly #correlator = new EventCorrelator();
  readonly #queue: Queued[] = [];
  #wakeSender: () => void = () => undefined;
  #patience: QuietWait | undefined;
  #lastNanos = 0n;
  #dropped = 0;

  constructor(deps: EventDeps, options: { nodeName: string }) {
    this.#deps = deps;
    this.#nodeName = options.nodeName;
  }

  /** Events that never reached the API server. */
  get dropped(): number {
    return this.#dropped;
  }

  pod(
    pod: Pod,
    type: EventType,
    reason: string,
    message: string,
    options: { fieldPath?: string; annotations?: Readonly<Record<string, string>> } = {},
  ): void {
    const { name, namespace = 'default', uid, resourceVersion } = pod.metadata;
    this.#record(
      {
        kind: 'Pod',
        namespace,
        name,
        ...(uid === undefined ? {} : { uid }),
        apiVersion: 'v1',
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
        ...(options.fieldPath === undefined ? {} : { fieldPath: options.fieldPath }),
      },
      { type, reason, message, namespace },
      options.annotations,
    );
  }

  claim(claim: KubeObject, type: EventType, reason: string, message: string): void {
    const { name, namespace = 'default', uid = '', resourceVersion = '' } = claim.metadata;
    const about = { kind: 'PersistentVolumeClaim', namespace, name, uid, apiVersion: 'v1', resourceVersion };
    this.#record(about, { type, reason, message, namespace });
  }

  volume(volume: KubeObject, type: EventType, reason: string, message: string): void {
    const { name, uid = '', resourceVersion = '' } = volume.metadata;
    const about = { kind: 'PersistentVolume', name, uid, apiVersion: 'v1', resourceVersion };
    this.#record(about, { type, reason, message, namespace: 'default' });
  }

  node(type: EventType, reason: string, message: string): void {
    const about = { kind: 'Node', name: this.#nodeName, apiVersion: 'v1' };
    this.#record(about, { type, reason, message, namespace: 'default' });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    const backoff = new Backoff({ baseMs: 250, maxMs: 10_000 });
    while (!signal.aborted) {
      const head = this.#queue[0];
      if (head === undefined || client === undefined) {
        await this.#nextWake(signal);
        continue;
      }
      if (await this.#letPodsStart(head, signal)) continue;
      if (clock.monotonic() - head.atMs > MAX_AGE_MS || (await this.#send(client, head, signal))) {
        this.#queue.shift();
        backoff.succeeded();
      } else if (!signal.aborted) {
        await clock.sleep(backoff.failed(clock.monotonic()) * (0.5 + clock.random() / 2), signal);
      }
    }
  }

  /** True when it waited: the queue may look different now. */
  async #letPodsStart(head: Queued, signal: AbortSignal): Promise<boolean> {
    const { clock, starts } = this.#deps;
    const leftMs = head.atMs + CROWD_MS - clock.monotonic();
    if (leftMs <= 0 || starts?.crowded() !== true || this.#queue.some(({ event }) => event.type !== 'Normal'))
      return false;
    const patience = new QuietWait(clock, starts.quiet, leftMs, signal);
    this.#patience = patience;
    try {
      await patience.wait();
    } catch {
      // Aborted: the loop sees it.
    } finally {
      this.#patience = undefined;
      patience.end();
    }
    return true;
  }

  #record(
    involvedObject: KubeEvent['involvedObject'],
    what: { type: EventType; reason: string; message: string; namespace: string },
    annotations?: Readonly<Record<string, string>>,
  ): void {
    const { clock } = this.#deps;
    const now = apiTime(clock.now());
    const message = shortened(what.message);
    const event: KubeEvent = {
      kind: 'Event',
      apiVersion: 'v1',
      metadata: {
        name: eventName(involvedObject.name ?? '', this.#stamp()),
        namespace: what.namespace,
        ...(annotations === undefined ? {} : { annotations }),
      },
      involvedObject,
      reason: what.reason,
      message,
      source: { component: 'kubelet', host: this.#nodeName },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
      type: what.type,
      eventTime: null,
      reportingComponent: 'kubelet',
      reportingInstance: this.#nodeName,
    };
    const short = { ...event, message: shortened(message, MAX_KEPT_BYTES) };
    this.ring.add(short);
    this.#deps.onEvent?.(short);
    const { type, reason } = what;
    this.#deps.log.debug('event', { about: involvedObject.name, type, reason, message });
    if (this.#deps.client !== undefined) this.#enqueue(event);
  }

  #enqueue(event: KubeEvent): void {
    const { isSpam, key, message, previous } = this.#correlator.judge(event, this.#deps.clock.monotonic());
    const count = (previous?.count ?? 0) + 1;
    const sent = {
      name: previous?.name ?? event.metadata.name,
      count,
      firstTimestamp: previous?.firstTimestamp ?? event.firstTimestamp ?? '',
    };
    this.#correlator.remember(key, sent);
    if (isSpam) {
      this.#dropped++;
      return;
    }
    const full: KubeEvent = { ...event, message: shortened(message), count, firstTimestamp: sent.firstTimestamp };
    const entry: Queued = { key, event: full, atMs: this.#deps.clock.monotonic() };
    // An earlier one still waiting behind the head takes the new count along: one request instead of two.
    const waiting = this.#queue.findIndex((q, i) => i > 0 && q.key === key);
    if (waiting > 0) {
      const { previous: base, event: older } = this.#queue[waiting] ?? entry;
      const merged = { ...full, metadata: older.metadata };
      this.#queue[waiting] = { ...entry, event: merged, ...(base === undefined ? {} : { previous: base }) };
    } else {
      this.#queue.push({ ...entry, ...(previous === undefined ? {} : { previous }) });
    }
    this.#dropOldest();
    if (event.type !== 'Normal') this.#patience?.end();
    this.#wakeSender();
  }

  /** Keeps the bounds of the queue. The head may be under way. */
  #dropOldest(): void {
    let characters = this.#queue.reduce((sum, { event }) => sum + (event.message?.length ?? 0), 0);
    while (this.#queue.length > MAX_QUEUE || characters > MAX_QUEUE_CHARACTERS) {
      const [oldest] = this.#queue.splice(1, 1);
      if (oldest === undefined) return;
      characters -= oldest.event.message?.length ?? 0;
      this.#dropped++;
    }
  }

  /** True when the event is done with, sent or refused for good. */
  async #send(client: EventClient, { key, event, previous }: Queued, signal: AbortSignal): Promise<boolean> {
    const { namespace = 'default' } = event.metadata;
    try {
      if (previous !== undefined) {
        const { count, lastTimestamp, message } = event;
        const body = { count, lastTimestamp, message };
        try {
          await client.patch(EVENTS, { namespace, name: previous.name }, body, signal);
          return true;
        } catch (err) {
          if (!isFault(err, 'notFound')) throw err;
        }
      }
      await client.create(EVENTS, { namespace }, event, signal);
      this.#renamed(key, event);
      return true;
    } catch (err) {
      if (signal.aborted || isTransient(err)) return false;
      this.#dropped++;
      this.#correlator.forget(key);
      this.#deps.log.debug('server rejected event', { event: event.metadata.name, namespace, err });
      return true;
    }
  }

  /** After a repeat had to be posted anew, later repeats must count onto the new name. */
  #renamed(key: string, event: KubeEvent): void {
    const { name } = event.metadata;
    const firstTimestamp = event.firstTimestamp ?? '';
    this.#correlator.rename(key, { name, count: event.count ?? 1, firstTimestamp });
    for (let i = 1; i < this.#queue.length; i++) {
      const queued = this.#queue[i];
      if (queued?.key === key && queued.previous !== undefined) {
        this.#queue[i] = { ...queued, previous: { ...queued.previous, name } };
      }
    }
  }

  /** Lowercase hex of the wall time in nanoseconds, never twice the same. */
  #stamp(): string {
    const now = this.#deps.clock.nowNanos();
    this.#lastNanos = now > this.#lastNanos ? now : this.#lastNanos + 1n;
    return this.#lastNanos.toString(16);
  }

  #nextWake(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done);
        this.#wakeSender = () => undefined;
        resolve();
      };
      this.#wakeSender = done;
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

/** Named after its object, unless no object may be named so. */
function eventName(objectName: string, stamp: string): string {
  const name = `${objectName}.${stamp}`;
  if (dns1123Subdomain(name).length === 0) return name;
  return hash('sha256', name).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
}

const isTransient = (err: unknown): boolean =>
  isFault(err, 'unavailable', 'deadline', 'exhausted', 'cancelled') || !isFault(err);

/** More than any probe prints. */
const MAX_MESSAGE_BYTES = 16 * 1024;
/** Of every event on this node. */
const MAX_KEPT_BYTES = 1024;
const CUT = ' ...';

/** Texts of runtimes and registries may be of any length. Cut between two characters. */
export function shortened(message: string, maxBytes = MAX_MESSAGE_BYTES): string {
  if (Buffer.byteLength(message) <= maxBytes) return message;
  const bytes = Buffer.from(message).subarray(0, maxBytes - CUT.length);
  // As of a stream that goes on: the beginning of a character that is cut is left out.
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true }) + CUT;
}
