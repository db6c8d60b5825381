// The table people read, ratios first.
import { isReached, ratioOf, type Row, type Unit } from './rows.ts';

const HEAD = ['ratio', 'wanted', 'Go', '', 'figure', 'value', 'floor'] as const;

export function table(rows: readonly Row[]): string {
  const cells = rows.map((row) => {
    const ratio = ratioOf(row);
    const hasRatio = ratio !== undefined;
    return [
      hasRatio ? times(ratio) : '',
      wantedText(row, hasRatio),
      row.go === undefined ? '' : hasRatio ? times(row.go) : amount(row.go, row.unit),
      { true: 'ok', false: 'MISSED', undefined: '' }[String(isReached(row))] ?? '',
      row.what,
      amount(row.value, row.unit),
      row.floor === undefined ? '' : amount(row.floor, row.unit),
    ];
  });
  const widths = HEAD.map((title, i) => Math.max(title.length, ...cells.map((line) => line[i]?.length ?? 0)));
  const line = (parts: readonly string[]): string =>
    parts
      .map((part, i) => (i === 4 || i === 3 ? part.padEnd(widths[i] ?? 0) : part.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  const notes = rows.filter((row) => row.note !== undefined).map((row) => `  ${row.key}: ${row.note}`);
  return [line(HEAD), line(widths.map((w) => '-'.repeat(w))), ...cells.map(line), ...notes].join('\n');
}

function wantedText({ wanted, unit }: Row, isRatio: boolean): string {
  if (wanted === undefined) return '';
  const show = (n: number): string => (isRatio ? times(n) : amount(n, unit));
  return wanted.atMost !== undefined ? `<= ${show(wanted.atMost)}` : `>= ${show(wanted.atLeast ?? 0)}`;
}

const times = (ratio: number): string => `${ratio.toFixed(2)} x`;

function amount(value: number, unit: Unit): string {
  if (Number.isNaN(value)) return 'none';
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${unit}`;
}
