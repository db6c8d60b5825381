// Columns of text, as wide as their content. Pure.

/** Every column but the last is padded; numbers are not special. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = new Map<number, number>();
  const widthOf = (at: number): number => widths.get(at) ?? 0;
  for (const row of rows) for (const [at, cell] of row.entries()) widths.set(at, Math.max(widthOf(at), cell.length));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widthOf(at))))
      .join('  ')
      .trimEnd();
  return rows.map((row) => `${line(row)}\n`).join('');
}

/** Cuts every line to the width of a terminal. */
export const cut = (text: string, columns: number): string =>
  text
    .split('\n')
    .map((line) => (line.length <= columns ? line : `${line.slice(0, Math.max(0, columns - 1))}…`))
    .join('\n');
