// What a scenario has to say: one figure per row, with what it is measured against.

export type Unit = 'ms' | 's' | 'pods/s' | '%' | 'MB' | 'calls' | 'x';

export type Row = {
  /** Stable name of the figure in the history: `serial.ready.p50`. */
  readonly key: string;
  readonly what: string;
  readonly value: number;
  readonly unit: Unit;
  /** The same work by bare CRI calls (or by bare Node), in the same run. */
  readonly floor?: number;
  /** What is wanted: of the ratio where there is a floor, of the value otherwise. */
  readonly wanted?: { readonly atMost?: number; readonly atLeast?: number };
  /** What the Go kubelet 1.36.4 had in the same measure (ratio or value). */
  readonly go?: number;
  readonly note?: string;
};

export const ratioOf = (row: Row): number | undefined => (row.floor === undefined ? undefined : row.value / row.floor);

/** Whether the figure is what was wanted; undefined where nothing was. */
export function isReached(row: Row): boolean | undefined {
  if (row.wanted === undefined) return undefined;
  const measured = ratioOf(row) ?? row.value;
  if (Number.isNaN(measured)) return false;
  return measured <= (row.wanted.atMost ?? Infinity) && measured >= (row.wanted.atLeast ?? -Infinity);
}
