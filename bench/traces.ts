// The kubelet's own waterfalls, read from its log and put together: where the time of a start and a stop goes.
import { readFileSync } from 'node:fs';
import type { Kind, Waterfall } from '../src/trace/waterfall.ts';
import { median } from './statistics.ts';

export function tracesIn(log: string): string {
  const waterfalls: Waterfall[] = [];
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    const found = /"waterfall" waterfall=("(?:[^"\\]|\\.)*")/.exec(line)?.[1];
    if (found !== undefined) waterfalls.push(JSON.parse(JSON.parse(found) as string) as Waterfall);
  }
  return [summary('start', waterfalls), summary('stop', waterfalls)].join('\n');
}

/** Medians of when each piece began and how long it took, in the order of beginning. */
function summary(kind: Kind, all: readonly Waterfall[]): string {
  const chosen = all.filter((w) => w.kind === kind);
  const pieces = new Map<string, { from: number[]; took: number[] }>();
  for (const { spans } of chosen) {
    const seen = new Map<string, number>();
    for (const { name, fromMs, toMs } of spans) {
      const count = (seen.get(name) ?? 0) + 1;
      seen.set(name, count);
      const label = count === 1 ? name : `${name} #${count}`;
      const piece = pieces.get(label) ?? { from: [], took: [] };
      piece.from.push(fromMs);
      piece.took.push((toMs ?? fromMs) - fromMs);
      pieces.set(label, piece);
    }
  }
  const lines = [...pieces]
    .map(([label, { from, took }]) => ({ label, count: took.length, from: median(from), took: median(took) }))
    .sort((a, b) => a.from - b.from)
    .map(
      ({ label, count, from, took }) =>
        `  ${label.padEnd(26)} ${String(count).padStart(4)}  at ${from.toFixed(1).padStart(8)} ms  took ${took.toFixed(1).padStart(8)} ms`,
    );
  const whole = median(chosen.map((w) => w.tookMs ?? Number.NaN));
  return [`${kind}: ${chosen.length} waterfalls, ${whole.toFixed(1)} ms p50`, ...lines].join('\n');
}
