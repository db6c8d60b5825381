// Follows a hint until the runtime's records agree with it. containerd publishes an event a moment before its CRI
// records it, so the first read may still show the old state: look again, soon, a few times, then leave it to relists.
import { podUid, type PodUid } from '../core/ids.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Expectation, Hint } from './runtime-events.ts';

export type HintDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly cache: {
    ownerOf(id: string): PodUid | undefined;
    refresh(uid: PodUid, signal: AbortSignal): Promise<PodSnapshot>;
  };
  /** Asks the runtime whose container or sandbox this is. */
  readonly lookUp: (id: string, signal: AbortSignal) => Promise<string | undefined>;
};

const WAITS_MS = [5, 10, 20, 40, 80, 160, 320, 640];

export class HintFollower {
  readonly #deps: HintDeps;
  readonly #followed = new Map<string, Expectation>();
  readonly #running = new Set<Promise<void>>();

  constructor(deps: HintDeps) {
    this.#deps = deps;
  }

  follow(hint: Hint, signal: AbortSignal): void {
    const already = this.#followed.has(hint.id);
    this.#followed.set(hint.id, hint.expect);
    if (already) return;
    const run = this.#follow(hint, signal).finally(() => {
      this.#followed.delete(hint.id);
      this.#running.delete(run);
    });
    this.#running.add(run);
  }

  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Never rejects: a hint is only a hint. */
  async #follow(hint: Hint, signal: AbortSignal): Promise<void> {
    const { cache, clock, log } = this.#deps;
    try {
      for (const waitMs of [...WAITS_MS, undefined]) {
        const expect = this.#followed.get(hint.id) ?? 'any';
        const uid = await this.#ownerOf(hint, signal);
        if (uid === undefined && expect === 'gone') return;
        if (uid !== undefined && fulfils(await cache.refresh(uid, signal), hint.id, expect)) {
          // A newer event about the same container may have come while we read.
          if (this.#followed.get(hint.id) === expect) return;
        }
        if (waitMs === undefined || signal.aborted) return;
        await clock.sleep(waitMs, signal);
      }
    } catch (err) {
      if (!isFault(err, 'cancelled') && !signal.aborted) log.debug('hint led nowhere', { id: hint.id, err });
    }
  }

  async #ownerOf(hint: Hint, signal: AbortSignal): Promise<PodUid | undefined> {
    const known = hint.podUid === '' ? this.#deps.cache.ownerOf(hint.id) : podUid(hint.podUid);
    if (known !== undefined) return known;
    const found = await this.#deps.lookUp(hint.id, signal);
    return found === undefined || found === '' ? undefined : podUid(found);
  }
}

/** Whether the snapshot shows what the event said, or something later. */
export function fulfils(snapshot: PodSnapshot, id: string, expect: Expectation): boolean {
  if (expect === 'any') return true;
  const container = snapshot.containers.find((c) => c.id === id);
  const sandbox = snapshot.sandboxes.find((s) => s.id === id);
  switch (expect) {
    case 'gone':
      return container === undefined && sandbox === undefined;
    case 'stopped':
      return container?.state !== 'running' && sandbox?.ready !== true;
    case 'started':
      return (container !== undefined && container.state !== 'created') || sandbox !== undefined;
  }
}
