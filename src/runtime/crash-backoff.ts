// How long a container that keeps ending waits before its next start. One value per container definition; the wait runs
// from the moment the container ended, so its end is an exact point in time.
import { fullName, type Container, type Pod } from '../core/pod.ts';

/** A run as long as this is a good one, whatever the delays. */
const GOOD_RUN_MS = 600_000;

export type CrashBackoffOptions = { readonly initialMs: number; readonly maxMs: number };

type Entry = {
  readonly delayMs: number;
  readonly updatedAt: number;
  /** An end that is still to come by a clock that was set back since, and when it was first asked about. */
  ahead?: { readonly endedAt: number; readonly askedAt: number };
};

export class CrashBackoff {
  readonly #options: CrashBackoffOptions;
  readonly #entries = new Map<string, Entry>();
  /** Ends of containers that are no longer in the runtime to tell. */
  readonly #ends = new Map<string, number>();

  constructor(options: CrashBackoffOptions) {
    this.#options = { ...options, initialMs: Math.min(options.initialMs, options.maxMs) };
  }

  /** The wait that still holds for a container that ended at `endedAt`; undefined when it may start. */
  waiting(key: string, endedAt: number, now: number): { delayMs: number; retryAt: number } | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#forgotten(entry, endedAt)) return undefined;
    const { delayMs } = entry;
    const from = begunBy(entry, endedAt, now);
    return now - from >= delayMs ? undefined : { delayMs, retryAt: from + delayMs };
  }

  /** A start after an end at `endedAt`: the next end waits longer. Returns what takes that back. */
  started(key: string, endedAt: number, now: number): () => void {
    const entry = this.#entries.get(key);
    const delayMs =
      entry === undefined || this.#forgotten(entry, endedAt)
        ? this.#options.initialMs
        : Math.min(entry.delayMs * 2, this.#options.maxMs);
    this.#entries.set(key, { delayMs, updatedAt: now });
    return () => {
      if (entry === undefined) this.#entries.delete(key);
      else this.#entries.set(key, entry);
    };
  }

  /** Remembers the end of a container that is about to be removed and started anew. */
  removed(key: string, endedAt: number): void {
    this.#ends.set(key, endedAt);
  }

  lastEnd(key: string): number | undefined {
    return this.#ends.get(key);
  }

  forgetPod(pod: Pod): void {
    const prefix = podPrefix(pod);
    for (const map of [this.#entries, this.#ends])
      for (const key of map.keys()) if (key.startsWith(prefix)) map.delete(key);
  }

  /** Drops what no longer influences anything. */
  prune(now: number): void {
    for (const [key, entry] of this.#entries) if (this.#forgotten(entry, now)) this.#entries.delete(key);
    for (const [key, endedAt] of this.#ends) if (now - endedAt > GOOD_RUN_MS) this.#ends.delete(key);
  }

  get size(): number {
    return this.#entries.size + this.#ends.size;
  }

  #forgotten(entry: Entry, at: number): boolean {
    return at - entry.updatedAt > GOOD_RUN_MS;
  }
}

/** A clock set back must not stretch the wait beyond the delay itself: it begins when the end is first heard of. */
function begunBy(entry: Entry, endedAt: number, now: number): number {
  if (endedAt <= now) return endedAt;
  const { ahead } = entry;
  if (ahead?.endedAt === endedAt && ahead.askedAt <= now) return ahead.askedAt;
  entry.ahead = { endedAt, askedAt: now };
  return now;
}

const podPrefix = (pod: Pod): string => `${fullName(pod)}\n${pod.metadata.uid ?? ''}\n`;

/** A changed image or changed resources start over. */
export const backoffKey = (pod: Pod, container: Container): string =>
  `${podPrefix(pod)}${container.name}\n${container.image ?? ''}\n${JSON.stringify(container.resources ?? {})}`;
