// Has a pod's status say why it is not ready, once that has lasted. Woken by every change of a status; a pod that becomes
// ready in its usual time costs nothing. Each change is a request to the API server, so the sentence carries no figure that
// grows by itself, and changes rarely.
import type { PodUid } from '../core/ids.ts';
import type { Pod, PodStatus } from '../core/pod.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { aborted } from '../lib/abort.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { Why, WhyState } from './facts.ts';
import { inOneLine } from './why.ts';
import { shortly } from './words.ts';

export type NotReadyDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** In words that stay. */
  readonly why: (pod: Pod) => Why;
  /** Neither ready nor ended. */
  readonly needsExplanation: (status: PodStatus) => boolean;
  readonly statuses: {
    get(uid: PodUid): { readonly pod: Pod; readonly status: PodStatus; readonly finished: boolean } | undefined;
    all(): Iterable<[PodUid, unknown]>;
    explain(uid: PodUid, explanation: { readonly reason: string; readonly message: string }): void;
  };
};

/** Most pods are ready sooner, and nobody has asked by then. */
const AFTER_MS = 30_000;
/** How often a pod that is still not ready is looked at. */
const EVERY_MS = 60_000;
/** The same cause in other words (an id in a message of the runtime) waits so long. */
const REWORDED_MS = 600_000;
const MAX_LENGTH = 600;

const SHOWN: ReadonlySet<WhyState> = new Set<WhyState>(['failing', 'waiting', 'progressing']);

type Told = { readonly cause: string; readonly container: string | undefined; readonly atMs: number };
type Watched = { timer: Timer; told?: Told };

export class NotReadyConditions implements Runnable {
  readonly name = 'not-ready-conditions';
  readonly #deps: NotReadyDeps;
  readonly #watched = new Map<PodUid, Watched>();
  readonly #enabled: boolean;
  #running = false;

  constructor(deps: NotReadyDeps, { enabled }: { readonly enabled: boolean }) {
    this.#deps = deps;
    this.#enabled = enabled;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#running = this.#enabled;
    for (const [uid] of this.#deps.statuses.all()) this.statusChanged(uid);
    await aborted(signal);
    this.#running = false;
    for (const { timer } of this.#watched.values()) timer.cancel();
    this.#watched.clear();
  }

  statusChanged(uid: PodUid): void {
    if (!this.#running) return;
    const watched = this.#watched.get(uid);
    if (!this.#isConcerned(uid)) {
      watched?.timer.cancel();
      this.#watched.delete(uid);
    } else if (watched === undefined) {
      this.#watched.set(uid, { timer: this.#deps.clock.after(AFTER_MS, () => this.#look(uid)) });
    }
  }

  #isConcerned(uid: PodUid): boolean {
    const entry = this.#deps.statuses.get(uid);
    return entry !== undefined && !entry.finished && this.#deps.needsExplanation(entry.status);
  }

  #look(uid: PodUid): void {
    const watched = this.#watched.get(uid);
    if (watched === undefined || !this.#isConcerned(uid)) return void this.#watched.delete(uid);
    const { clock, log } = this.#deps;
    watched.timer = clock.after(EVERY_MS, () => this.#look(uid));
    try {
      this.#tell(uid, watched);
    } catch (err) {
      log.error('why a pod is not ready cannot be said', { uid, err });
    }
  }

  #tell(uid: PodUid, watched: Watched): void {
    const { clock, statuses, why } = this.#deps;
    const pod = statuses.get(uid)?.pod;
    const found = pod === undefined ? undefined : why(pod);
    if (found === undefined || !SHOWN.has(found.state)) return;
    const { told } = watched;
    const { cause, container } = found;
    const isSame = told !== undefined && told.cause === cause && told.container === container;
    if (isSame && clock.monotonic() - told.atMs < REWORDED_MS) return;
    watched.told = { cause, container, atMs: clock.monotonic() };
    statuses.explain(uid, { reason: cause, message: shortly(inOneLine(found), MAX_LENGTH) });
  }
}
