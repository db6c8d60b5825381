// How much happened when, as small columns over the time that is shown: what failed at the foot, the rest above it.
import type { TimelineEntry, Tone } from '../model.ts';
import { h, svg, type Child } from './dom.ts';
import { age, clockTime } from './format.ts';

const COLUMNS = 120;
const HEIGHT = 40;
const LEAST_MS = 300_000;
const MOST_MS = 86_400_000;
/** From the foot up. */
const ORDER: readonly Tone[] = ['bad', 'warn', 'busy', 'ok', 'idle'];

type Column = Partial<Record<Tone, number>>;

export function strip(entries: readonly TimelineEntry[], nowMs: number): readonly Child[] {
  if (entries.length === 0) return [];
  const oldest = entries.reduce((least, e) => Math.min(least, e.atMs), nowMs);
  const spanMs = Math.min(MOST_MS, Math.max(LEAST_MS, nowMs - oldest));
  const columns = columnsOf(entries, nowMs - spanMs, spanMs);
  const most = Math.max(1, ...columns.map((c) => ORDER.reduce((sum, tone) => sum + (c[tone] ?? 0), 0)));
  const words = `What happened in the last ${age(spanMs)}: ${entries.length} entries`;
  return [
    svg(
      'svg',
      { viewBox: `0 0 ${COLUMNS} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': words },
      ...columns.flatMap((column, x) => rectangles(column, x, HEIGHT / most)),
    ),
    h(
      'figcaption',
      { class: 'dim' },
      h('span', {}, clockTime(nowMs - spanMs)),
      h('span', {}, clockTime(nowMs - spanMs / 2)),
      h('span', {}, 'now'),
    ),
  ];
}

function columnsOf(entries: readonly TimelineEntry[], fromMs: number, spanMs: number): readonly Column[] {
  const columns: Column[] = Array.from({ length: COLUMNS }, () => ({}));
  for (const { atMs, tone } of entries) {
    const column = columns[Math.min(COLUMNS - 1, Math.floor(((atMs - fromMs) / spanMs) * COLUMNS))];
    if (column !== undefined) column[tone] = (column[tone] ?? 0) + 1;
  }
  return columns;
}

function rectangles(column: Column, x: number, each: number): SVGElement[] {
  let foot = HEIGHT;
  return ORDER.flatMap((tone) => {
    const height = (column[tone] ?? 0) * each;
    if (height === 0) return [];
    foot -= height;
    return [svg('rect', { class: tone, x: x + 0.1, y: foot.toFixed(2), width: 0.8, height: height.toFixed(2) })];
  });
}
