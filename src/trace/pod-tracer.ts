// Takes the time of what happens to pods. `during` says which pod the work inside belongs to, however deep; `span` names
// one piece of it. Work that belongs to no pod, or to one that is not being traced, passes through untouched.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { PodUid } from '../core/ids.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Kind, Span, Waterfall } from './waterfall.ts';

export type PodTracerDeps = {
  readonly clock: Clock;
  /** Told of every finished waterfall. */
  readonly onFinished?: (waterfall: Waterfall) => void;
};

export type PodTracerOptions = {
  /** Finished waterfalls that are kept. */
  readonly keep?: number;
  /** Spans per waterfall; a pod that is tried again and again must not fill the memory. */
  readonly maxSpans?: number;
};

type OpenSpan = { -readonly [K in keyof Span]: Span[K] };
type Record = Omit<Waterfall, 'tookMs' | 'spans'> & { readonly begun: number; readonly spans: OpenSpan[] };

const KEEP = 256;
const MAX_SPANS = 100;

export class PodTracer {
  readonly #deps: PodTracerDeps;
  readonly #keep: number;
  readonly #maxSpans: number;
  readonly #current = new AsyncLocalStorage<PodUid>();
  readonly #underWay = new Map<PodUid, Record>();
  readonly #finished: Waterfall[] = [];

  constructor(deps: PodTracerDeps, options: PodTracerOptions = {}) {
    this.#deps = deps;
    this.#keep = options.keep ?? KEEP;
    this.#maxSpans = options.maxSpans ?? MAX_SPANS;
  }

  /** A pod begins to start or stop. A start that is under way is over when the stop begins. */
  begin(kind: Kind, pod: { readonly uid: PodUid; readonly namespace: string; readonly name: string }): void {
    const known = this.#underWay.get(pod.uid);
    if (known?.kind === kind) return;
    const { clock } = this.#deps;
    this.#underWay.set(pod.uid, { kind, ...pod, startedAtMs: clock.now(), begun: clock.monotonic(), spans: [] });
  }

  /** It is where it should be: Ready, or gone. */
  finish(kind: Kind, uid: PodUid): void {
    const record = this.#underWay.get(uid);
    if (record?.kind !== kind) return;
    this.#underWay.delete(uid);
    const waterfall = { ...shown(record), tookMs: this.#deps.clock.monotonic() - record.begun };
    this.#finished.push(waterfall);
    if (this.#finished.length > this.#keep) this.#finished.shift();
    this.#deps.onFinished?.(waterfall);
  }

  /** Nothing more will be heard of these pods' starts. */
  keepOnly(known: ReadonlySet<PodUid>): void {
    for (const uid of this.#underWay.keys()) if (!known.has(uid)) this.#underWay.delete(uid);
  }

  /** Everything `work` does, also later and elsewhere, belongs to this pod. */
  during<T>(uid: PodUid, work: () => T): T {
    return this.#underWay.has(uid) ? this.#current.run(uid, work) : work();
  }

  /** One piece of the current pod's work. */
  span<T>(name: string, work: () => Promise<T>, of?: string): Promise<T> {
    const uid = this.#current.getStore();
    const record = uid === undefined ? undefined : this.#underWay.get(uid);
    if (record === undefined || record.spans.length >= this.#maxSpans) return work();
    const span: OpenSpan = { name, fromMs: this.#deps.clock.monotonic() - record.begun };
    if (of !== undefined) span.of = of;
    record.spans.push(span);
    const end = (): void => void (span.toMs = this.#deps.clock.monotonic() - record.begun);
    return work().then(
      (value) => {
        end();
        return value;
      },
      (err: unknown) => {
        end();
        span.error = messageOf(err);
        throw err;
      },
    );
  }

  /** A piece of one pod's work, named from outside of it. */
  spanOf<T>(uid: PodUid, name: string, work: () => Promise<T>, of?: string): Promise<T> {
    return this.during(uid, () => this.span(name, work, of));
  }

  /** The pod's latest start and stop, under way or finished, in the order they began. */
  ofPod(namespace: string, name: string): readonly Waterfall[] {
    const its = this.all().filter((w) => w.name === name && w.namespace === namespace);
    return [its.findLast((w) => w.kind === 'start'), its.findLast((w) => w.kind === 'stop')]
      .filter((w) => w !== undefined)
      .sort((a, b) => a.startedAtMs - b.startedAtMs);
  }

  /** The finished ones that took longest, longest first. */
  slowest(count: number, kind: Kind = 'start'): readonly Waterfall[] {
    return this.#finished
      .filter((w) => w.kind === kind)
      .sort((a, b) => (b.tookMs ?? 0) - (a.tookMs ?? 0))
      .slice(0, count);
  }

  all(): readonly Waterfall[] {
    return [...this.#finished, ...[...this.#underWay.values()].map(shown)];
  }
}

const shown = ({ kind, uid, namespace, name, startedAtMs, spans }: Record): Waterfall => ({
  kind,
  uid,
  namespace,
  name,
  startedAtMs,
  spans: spans.map((s) => ({ ...s })),
});
