// One line per run, and a drawing of the ratios over the runs.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawLines } from './svg.ts';

export type Run = {
  readonly at: string;
  readonly node: string;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly loadBefore: number;
    readonly loadAfter: number;
  };
  readonly form?: string;
  readonly quick: boolean;
  readonly rows: readonly RunRow[];
};

export type RunRow = {
  readonly key: string;
  /** Null where nothing came of it. */
  readonly value: number | null;
  readonly unit: string;
  readonly ratio?: number | undefined;
  readonly wanted?: { readonly atMost?: number; readonly atLeast?: number } | undefined;
  readonly go?: number | undefined;
};

const FILE = join(import.meta.dirname, 'history.jsonl');
const DRAWING = join(import.meta.dirname, 'history.svg');

/** Ratios to the floor: what stays comparable between machines. */
const DRAWN = [
  'start-up.healthz',
  'serial.ready.p50',
  'serial.gone.p50',
  'burst-20.rate',
  'burst-50.rate',
  'burst-100.rate',
];

export function remember(run: Run): void {
  const rows = run.rows.map(({ key, value, unit, ratio, wanted, go }) => ({
    key,
    value: round(value ?? Number.NaN),
    unit,
    ratio: ratio === undefined ? undefined : round(ratio),
    wanted,
    go,
  }));
  appendFileSync(FILE, `${JSON.stringify({ ...run, rows })}\n`);
}

export function redrawHistory(): void {
  const runs = readRuns();
  const series = DRAWN.map((key) => ({
    name: key,
    values: runs.map((r) => r.rows.find((row) => row.key === key)?.ratio),
  }));
  writeFileSync(DRAWING, drawLines('ratio to the floor, run by run', series));
}

export function readRuns(): Run[] {
  if (!existsSync(FILE)) return [];
  return readFileSync(FILE, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Run);
}

const round = (n: number): number => Math.round(n * 1000) / 1000;
