// How long a failed image pull of one pod waits before it is tried again: 10 s, doubling to 5 minutes, per image.
import type { PodUid } from '../core/ids.ts';

type Entry = { delayMs: number; failedAt: number; message: string };

const BASE_MS = 10_000;
const MAX_MS = 300_000;

export class PullBackoff {
  readonly #baseMs: number;
  readonly #maxMs: number;
  readonly #pods = new Map<PodUid, Map<string, Entry>>();

  constructor(options: { baseMs?: number; maxMs?: number } = {}) {
    this.#baseMs = options.baseMs ?? BASE_MS;
    this.#maxMs = options.maxMs ?? MAX_MS;
  }

  /** What went wrong last, while the wait is not over. */
  waiting(
    uid: PodUid,
    image: string,
    now: number,
  ): { readonly lastError: string; readonly untilMs: number } | undefined {
    const entry = this.#pods.get(uid)?.get(image);
    if (entry === undefined || now - entry.failedAt >= entry.delayMs) return undefined;
    return { lastError: entry.message, untilMs: entry.failedAt + entry.delayMs };
  }

  /** A long quiet time starts the doubling over. */
  failed(uid: PodUid, image: string, now: number, message: string): void {
    const images = this.#pods.get(uid) ?? new Map<string, Entry>();
    const before = images.get(image);
    const fresh = before === undefined || now - before.failedAt > 2 * this.#maxMs;
    const delayMs = fresh ? this.#baseMs : Math.min(before.delayMs * 2, this.#maxMs);
    images.set(image, { delayMs: Math.min(delayMs, this.#maxMs), failedAt: now, message });
    this.#pods.set(uid, images);
  }

  /** The earliest end of a wait of this pod, on the monotonic clock. */
  nextRetryAt(uid: PodUid, now: number): number | undefined {
    let earliest: number | undefined;
    for (const { failedAt, delayMs } of this.#pods.get(uid)?.values() ?? []) {
      const end = failedAt + delayMs;
      if (end > now && (earliest === undefined || end < earliest)) earliest = end;
    }
    return earliest;
  }

  forget(uid: PodUid): void {
    this.#pods.delete(uid);
  }

  /** Drops what has been quiet so long that it would start over anyway. */
  prune(now: number): void {
    for (const [uid, images] of this.#pods) {
      for (const [image, entry] of images) if (now - entry.failedAt > 2 * this.#maxMs) images.delete(image);
      if (images.size === 0) this.#pods.delete(uid);
    }
  }
}
