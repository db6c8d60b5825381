// The runtime's images for the node's status, read at most every half minute; as they were last when it does not tell. The
// node's status does not wait for a runtime that hangs: that is when it matters most.
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { ImageFact } from './node-object.ts';

type Listed = { readonly repoDigests: readonly string[]; readonly repoTags: readonly string[]; readonly size: number };

export type NodeImagesDeps = {
  readonly list: (signal: AbortSignal) => Promise<readonly Listed[]>;
  readonly clock: Clock;
  readonly log: Logger;
};

const FRESH_MS = 30_000;
/** After a list that failed, the next one. */
const RETRY_MS = 10_000;
/** How long a status waits for the list; one that takes longer is in the next status. */
const WAIT_MS = 2000;
const LIST_MS = 60_000;

export class NodeImages {
  readonly #deps: NodeImagesDeps;
  #at = -Infinity;
  #images: readonly ImageFact[] = [];
  #listing: Promise<void> | undefined;

  constructor(deps: NodeImagesDeps) {
    this.#deps = deps;
  }

  async read(signal: AbortSignal): Promise<readonly ImageFact[]> {
    const { clock, log } = this.#deps;
    if (this.#listing !== undefined || clock.monotonic() - this.#at < FRESH_MS) return this.#images;
    const listing = this.#list(signal).finally(() => (this.#listing = undefined));
    this.#listing = listing;
    await withDeadline(clock, signal, WAIT_MS, (own) => abortable(own, listing)).catch((err: unknown) => {
      if (!signal.aborted) log.debug('the node status does not wait for the list of images', { err });
    });
    return this.#images;
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { list, clock, log } = this.#deps;
    try {
      const listed = await withDeadline(clock, signal, LIST_MS, list);
      this.#images = listed.map(({ repoDigests, repoTags, size }) => ({ repoDigests, repoTags, sizeBytes: size }));
      this.#at = clock.monotonic();
    } catch (err) {
      this.#at = clock.monotonic() - FRESH_MS + RETRY_MS;
      log.debug('images could not be listed for the node status', { err });
    }
  }
}
