// Processor use as a rate: what a counter grew by between two samples that are far enough apart to mean something.

type Sample = { readonly usageNs: number; readonly atMs: number };
type Entry = { base: Sample; rate: number | undefined };

/** Samples closer than this do not replace the older one; closer than a second they say nothing. */
const WINDOW_MS = 5000;
const SHORTEST_MS = 1000;

export class CpuRates {
  readonly #entries = new Map<string, Entry>();

  /** Takes a sample (monotonic milliseconds) and tells the use in billionths of a processor; 0 while unknown. */
  observe(key: string, usageNs: number, atMs: number): number {
    const entry = this.#entries.get(key);
    const sample = { usageNs, atMs };
    if (entry === undefined || usageNs < entry.base.usageNs) {
      this.#entries.set(key, { base: sample, rate: undefined });
      return 0;
    }
    const elapsedMs = atMs - entry.base.atMs;
    if (elapsedMs < SHORTEST_MS) return entry.rate ?? 0;
    const rate = Math.round(((usageNs - entry.base.usageNs) / elapsedMs) * 1000);
    if (elapsedMs < WINDOW_MS) return entry.rate ?? rate;
    entry.base = sample;
    entry.rate = rate;
    return rate;
  }

  /** Forgets whatever is gone. */
  keepOnly(keys: ReadonlySet<string>): void {
    for (const key of this.#entries.keys()) if (!keys.has(key)) this.#entries.delete(key);
  }

  get size(): number {
    return this.#entries.size;
  }
}
