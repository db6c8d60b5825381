// Follows a hint until the runtime's records agree with it, then re-reads the pod. containerd publishes an event a moment
// before its CRI records it, so the first look may still show the old state: look again, soon, a few times, one cheap
// call each; what does not come true is left to relists. What the cache shows already is not read again, nor what is started
// or stopped by somebody who will read it.
import { podUid, type PodUid } from '../core/ids.ts';
import type { ObservedState, PodSnapshot } from '../core/snapshot.ts';
import { childScope, type Scope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Expectation, Hint } from './runtime-events.ts';

/** A container or sandbox as the runtime lists it. A ready sandbox counts as running, another as exited. */
export type Listed = { readonly uid: string; readonly state: ObservedState };

export type HintDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly cache: {
    ownerOf(id: string): PodUid | undefined;
    stateOf(id: string): ObservedState | undefined;
    /** Whether it was removed by us. */
    isRemoved(id: string): boolean;
    recordNews(uid: PodUid, id: string, news: 'started' | 'stopped'): boolean;
    refresh(uid: PodUid, signal: AbortSignal): Promise<PodSnapshot>;
  };
  /** Undefined when the runtime has no such container or sandbox. */
  readonly look: (id: string, signal: AbortSignal) => Promise<Listed | undefined>;
};

const FIRST_WAIT_MS = 5;
const GROWTH = 1.5;
const LONGEST_WAIT_MS = 100;
const GIVE_UP_AFTER_MS = 2000;

type Following = { hint: Hint; news: boolean; nap: Scope | undefined };

export class HintFollower {
  readonly #deps: HintDeps;
  readonly #followed = new Map<string, Following>();
  readonly #running = new Set<Promise<void>>();

  constructor(deps: HintDeps) {
    this.#deps = deps;
  }

  /** A hint about something already followed replaces the earlier one and looks at once. */
  follow(hint: Hint, signal: AbortSignal): void {
    const following = this.#followed.get(hint.id);
    if (following !== undefined) {
      following.hint = hint;
      following.news = true;
      following.nap?.abort();
      return;
    }
    const begun: Following = { hint, news: true, nap: undefined };
    this.#followed.set(hint.id, begun);
    const run = this.#run(begun, signal).finally(() => this.#running.delete(run));
    this.#running.add(run);
  }

  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Never rejects: a hint is only a hint. */
  async #run(following: Following, signal: AbortSignal): Promise<void> {
    while (following.news && !signal.aborted) {
      following.news = false;
      try {
        await this.#chase(following, signal);
      } catch (err) {
        // A newer hint is followed all the same.
        if (!isFault(err, 'cancelled') && !signal.aborted)
          this.#deps.log.debug('hint led nowhere', { id: following.hint.id, err });
      }
    }
    this.#followed.delete(following.hint.id);
  }

  /** The cache shows it, or does so after one read of the pod if the event named that. */
  async #isShown({ id, podUid: said, expect }: Hint, signal: AbortSignal): Promise<boolean> {
    const { cache } = this.#deps;
    if (cache.isRemoved(id) || isKnown(cache.stateOf(id), expect)) return true;
    const owner = said === '' ? cache.ownerOf(id) : podUid(said);
    if (owner !== undefined && this.#isForeseen(owner, id, expect)) return true;
    if (said === '') return false;
    await cache.refresh(podUid(said), signal);
    const state = cache.stateOf(id);
    return expect === 'gone' ? state === undefined : isKnown(state, expect);
  }

  /** Somebody starts or stops this pod's containers and will read them when he is through. */
  #isForeseen(uid: PodUid, id: string, expect: Expectation): boolean {
    return (expect === 'started' || expect === 'stopped') && this.#deps.cache.recordNews(uid, id, expect);
  }

  async #chase(following: Following, signal: AbortSignal): Promise<void> {
    const { cache, clock } = this.#deps;
    if (await this.#isShown(following.hint, signal)) return;
    const begun = clock.monotonic();
    let waitMs = FIRST_WAIT_MS;
    for (;;) {
      const { id, podUid: said, expect } = following.hint;
      const listed = await this.#deps.look(id, signal);
      const uid = said === '' ? (listed?.uid ?? cache.ownerOf(id)) : said;
      const late = clock.monotonic() - begun > GIVE_UP_AFTER_MS;
      if (cameTrue(listed, expect) || late) {
        if (uid === undefined || uid === '') return;
        if (!this.#isForeseen(podUid(uid), id, expect)) await cache.refresh(podUid(uid), signal);
        return;
      }
      if (following.news) return;
      following.nap = childScope(signal);
      await clock.sleep(waitMs, following.nap.signal);
      following.nap.release();
      following.nap = undefined;
      if (signal.aborted || following.news) return;
      waitMs = Math.min(waitMs * GROWTH, LONGEST_WAIT_MS);
    }
  }
}

/** Nothing goes back from these: a read of the pod has seen what the event tells of. */
function isKnown(state: ObservedState | undefined, expect: Expectation): boolean {
  switch (expect) {
    case 'any':
      return state !== undefined;
    case 'started':
      return state === 'running' || state === 'exited';
    case 'stopped':
      return state === 'exited';
    case 'gone':
      return false;
  }
}

/** Whether the runtime shows what the event said, or something later. */
export function cameTrue(listed: Listed | undefined, expect: Expectation): boolean {
  switch (expect) {
    case 'any':
      return true;
    case 'gone':
      return listed === undefined;
    case 'stopped':
      return listed?.state !== 'running';
    case 'started':
      return listed !== undefined && listed.state !== 'created';
  }
}
