// How fast a pull is of late, and what that makes of the rest. Pure.
import type { LayerProgress, ProgressSource, PullProgress } from './pull-progress.ts';

type Sample = { readonly atMs: number; readonly bytes: number };

/** Long enough to smooth what a network does within seconds, short enough to show when it changes. */
const WINDOW_MS = 10_000;

export class PullRate {
  #samples: readonly Sample[] = [];

  /** `atMs` is monotonic. */
  add(atMs: number, bytes: number): void {
    const last = this.#samples.at(-1);
    // A layer that has to be fetched anew takes its bytes back.
    if (last !== undefined && bytes < last.bytes) this.#samples = [];
    const from = this.#samples.findLastIndex((s) => s.atMs <= atMs - WINDOW_MS);
    this.#samples = [...this.#samples.slice(Math.max(0, from)), { atMs, bytes }];
  }

  bytesPerSecond(): number | undefined {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (first === undefined || last === undefined || last.atMs <= first.atMs) return undefined;
    return ((last.bytes - first.bytes) * 1000) / (last.atMs - first.atMs);
  }
}

export function progressOf(
  source: ProgressSource,
  done: { readonly doneBytes: number; readonly totalBytes?: number; readonly layers?: readonly LayerProgress[] },
  rate: PullRate,
): PullProgress {
  const { doneBytes, totalBytes, layers = [] } = done;
  const bytesPerSecond = rate.bytesPerSecond();
  const left = totalBytes === undefined ? undefined : totalBytes - doneBytes;
  const known = left !== undefined && left > 0 && bytesPerSecond !== undefined && bytesPerSecond > 0;
  return {
    source,
    doneBytes,
    ...(totalBytes === undefined ? {} : { totalBytes }),
    ...(bytesPerSecond === undefined ? {} : { bytesPerSecond }),
    ...(known ? { remainingSeconds: left / bytesPerSecond } : {}),
    layers,
  };
}
