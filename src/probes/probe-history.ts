// The last runs of one probe, kept in memory for people to look at.
import type { ProbeResult } from './probe-state.ts';

export type ProbeRun = {
  readonly atMs: number;
  readonly tookMs: number;
  /** `unknown`: the question could not be asked. */
  readonly result: ProbeResult;
  /** The beginning of what the container answered. */
  readonly output: string;
};

const KEEP = 20;
const OUTPUT_CHARS = 200;

export class ProbeHistory {
  readonly #runs: ProbeRun[] = [];

  add(run: ProbeRun): void {
    this.#runs.push({ ...run, output: run.output.slice(0, OUTPUT_CHARS) });
    if (this.#runs.length > KEEP) this.#runs.shift();
  }

  /** Oldest first. */
  runs(): readonly ProbeRun[] {
    return this.#runs;
  }
}
