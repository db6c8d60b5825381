// What a start or stop consisted of, as bars over time; the one before it is a thin line below each.
import type { PodView, WaterfallView } from '../model.ts';
import { h } from './dom.ts';
import { duration } from './format.ts';

type Span = WaterfallView['spans'][number];

const COLORS: Readonly<Record<string, string>> = {
  image: 'busy',
  volumes: 'warn',
  turn: 'idle',
  status: 'idle',
  observe: 'idle',
};
/** Of the whole. */
const SHORT_SHARE = 0.02;
const FEW = 5;
/** For people who do not know the runtime's calls. */
const WORDS: Readonly<Record<string, string>> = {
  turn: 'wait for its turn',
  runPodSandbox: 'sandbox and network',
  createContainer: 'create container',
  startContainer: 'start container',
  stopContainer: 'stop container',
  stopPodSandbox: 'stop sandbox',
};
const label = ({ name, of }: Span): string => `${WORDS[name] ?? name}${of === undefined ? '' : ` ${of}`}`;

export function waterfall({ now, before }: PodView['waterfalls'][number], nowMs: number): HTMLElement {
  const end = lengthOf(now, nowMs);
  const scale = Math.max(end, before === undefined ? 0 : lengthOf(before, nowMs), 1);
  const old = new Map((before?.spans ?? []).map((s) => [label(s), s]));
  const verb = now.kind === 'start' ? 'Start' : 'Stop';
  const took = now.tookMs === undefined ? `under way for ${duration(end)}` : `took ${duration(now.tookMs)}`;
  return h(
    'figure',
    { class: 'waterfall' },
    h(
      'figcaption',
      {},
      `${verb} ${took}`,
      before?.tookMs !== undefined && h('span', { class: 'dim' }, ` · the one before took ${duration(before.tookMs)}`),
    ),
    h('div', { class: 'axis', 'aria-hidden': 'true' }, ...[0, 0.25, 0.5, 0.75, 1].map((at) => tick(at, scale))),
    ...rows(now.spans, old, scale, end),
  );
}

/** What took next to no time is folded away; what failed or lasts is not. */
function rows(spans: readonly Span[], old: ReadonlyMap<string, Span>, scale: number, end: number): HTMLElement[] {
  const isLong = (s: Span): boolean =>
    s.toMs === undefined || s.error !== undefined || s.toMs - s.fromMs >= scale * SHORT_SHARE;
  const list = (some: readonly Span[]): HTMLElement =>
    h('ul', {}, ...some.map((span, i) => row(span, isNews(some, i), old.get(label(span)), scale, end)));
  const long = spans.filter(isLong);
  if (spans.length - long.length < FEW) return [list(spans)];
  const all = h('details', {}, h('summary', {}, `All ${spans.length} steps`), list(spans));
  return [list(long), all];
}

/** The same problem of every further attempt need not be read again. */
const isNews = (spans: readonly Span[], i: number): boolean =>
  spans.findIndex((span) => span.error === spans[i]?.error) === i;

const lengthOf = (w: WaterfallView, nowMs: number): number =>
  w.tookMs ?? Math.max(nowMs - w.startedAtMs, ...w.spans.map((s) => s.toMs ?? s.fromMs));

function tick(at: number, scale: number): HTMLElement {
  const element = h('span', {}, at === 0 ? '0' : duration(at * scale));
  element.style.left = `${at * 100}%`;
  return element;
}

function row(span: Span, news: boolean, before: Span | undefined, scale: number, end: number): HTMLElement {
  const to = span.toMs ?? end;
  const tone = span.error !== undefined ? 'bad' : span.toMs === undefined ? 'busy open' : (COLORS[span.name] ?? 'ok');
  const piece = h('span', { class: `piece ${tone}` });
  place(piece, span.fromMs, to, scale);
  const ghost = before?.toMs === undefined ? undefined : h('span', { class: 'ghost' });
  if (ghost !== undefined) place(ghost, before?.fromMs ?? 0, before?.toMs ?? 0, scale);
  const words = span.toMs === undefined ? `${duration(to - span.fromMs)} so far` : duration(to - span.fromMs);
  return h(
    'li',
    { title: span.error },
    h('span', { class: 'name' }, label(span)),
    h('span', { class: 'track', 'aria-hidden': 'true' }, piece, ghost),
    h('span', { class: 'num' }, words),
    news && span.error !== undefined && h('span', { class: 'error' }, span.error),
  );
}

function place(element: HTMLElement, from: number, to: number, scale: number): void {
  element.style.left = `${(from / scale) * 100}%`;
  element.style.width = `${Math.max(0.4, ((to - from) / scale) * 100)}%`;
}
