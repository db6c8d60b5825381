// Compares counts with those on record (`counts.json`): more than a tenth more of anything guarded is a finding. Who makes
// the kubelet dearer on purpose writes the record anew (`npm run bench -- counts --record "why"`) and says why.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Counted, Counts } from './counts.ts';

const FILE = join(import.meta.dirname, 'counts.json');
const MORE = 1.1;

/** Allocations (by a tenth) and context switches depend on how busy the machine is: printed, not guarded. */
const GUARDED: Readonly<Record<keyof Counted, readonly (keyof Omit<Counts, 'calls'>)[]>> = {
  start: ['criCalls', 'apiRequests'],
  stop: ['criCalls', 'apiRequests'],
};

export type CountsRecord = Counted & { readonly note: string };

export const recorded = (): CountsRecord => JSON.parse(readFileSync(FILE, 'utf8')) as CountsRecord;

export const record = (counted: Counted, note: string): void =>
  writeFileSync(FILE, `${JSON.stringify({ note, ...counted }, undefined, 2)}\n`);

/** One line for each figure that grew by more than a tenth. Empty is what is wanted. */
export function grown(before: Counted, now: Counted): string[] {
  return (['start', 'stop'] as const).flatMap((what) =>
    GUARDED[what]
      .filter((figure) => now[what][figure] > before[what][figure] * MORE)
      .map((figure) => `${figure} per ${what} grew from ${before[what][figure]} to ${now[what][figure]}`),
  );
}

const ROWS = [
  ['criCalls', 'CRI calls'],
  ['apiRequests', 'API requests'],
  ['allocatedKb', 'allocated, kB'],
  ['contextSwitches', 'context switches'],
] as const;

export function countsTable(now: Counted, before: Counted): string {
  const cell = (what: keyof Counted, figure: (typeof ROWS)[number][0]): string =>
    `${now[what][figure]} (${before[what][figure]})`.padStart(18);
  const lines = ROWS.map(([figure, name]) => `${name.padEnd(20)}${cell('start', figure)}${cell('stop', figure)}`);
  const calls = (['start', 'stop'] as const).map(
    (what) =>
      `${what}: ${Object.entries(now[what].calls)
        .map(([verb, n]) => `${verb} ${n}`)
        .join(', ')}`,
  );
  return [
    `${'per pod (on record)'.padEnd(20)}${'start'.padStart(18)}${'stop'.padStart(18)}`,
    ...lines,
    '',
    ...calls,
  ].join('\n');
}
