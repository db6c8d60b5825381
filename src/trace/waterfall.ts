// What a pod's start or stop consisted of, as plain data.
import type { PodUid } from '../core/ids.ts';

export type Kind = 'start' | 'stop';

export type Span = {
  readonly name: string;
  /** Milliseconds since the waterfall began. */
  readonly fromMs: number;
  /** Absent while it lasts: this is what the pod waits for. */
  readonly toMs?: number;
  /** What it was about: a container, an image. */
  readonly of?: string;
  readonly error?: string;
};

export type Waterfall = {
  readonly kind: Kind;
  readonly uid: PodUid;
  readonly namespace: string;
  readonly name: string;
  /** Wall time of its beginning. */
  readonly startedAtMs: number;
  /** Absent while it is under way. */
  readonly tookMs?: number;
  readonly spans: readonly Span[];
};

const WIDTH = 40;

/** For a terminal: one line per span, a bar for when it was. */
export function drawn({ kind, namespace, name, tookMs, spans }: Waterfall): string {
  const end = tookMs ?? Math.max(1, ...spans.map((s) => s.toMs ?? s.fromMs));
  const wide = Math.max(10, ...spans.map((s) => labelOf(s).length));
  const at = (ms: number): number => Math.round((Math.min(ms, end) / end) * WIDTH);
  const lines = spans.map((span) => {
    const from = at(span.fromMs);
    const bar = '='.repeat(Math.max(1, at(span.toMs ?? end) - from));
    const took = span.toMs === undefined ? 'still' : `${(span.toMs - span.fromMs).toFixed(1)} ms`;
    const failed = span.error === undefined ? '' : `  ${span.error}`;
    return `${labelOf(span).padEnd(wide)} |${(' '.repeat(from) + bar).padEnd(WIDTH + 1)}| ${took}${failed}`;
  });
  const head = `${kind} of ${namespace}/${name}: ${tookMs === undefined ? 'under way' : `${tookMs.toFixed(1)} ms`}`;
  return [head, ...lines].join('\n');
}

const labelOf = (span: Span): string => (span.of === undefined ? span.name : `${span.name} ${span.of}`);
