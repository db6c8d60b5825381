// The runtime's images for the node's status, read at most every half minute; as they were last when it does not tell.
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

export class NodeImages {
  readonly #deps: NodeImagesDeps;
  #at = -Infinity;
  #images: readonly ImageFact[] = [];

  constructor(deps: NodeImagesDeps) {
    this.#deps = deps;
  }

  async read(signal: AbortSignal): Promise<readonly ImageFact[]> {
    const { list, clock, log } = this.#deps;
    if (clock.monotonic() - this.#at < FRESH_MS) return this.#images;
    try {
      this.#images = (await list(signal)).map(({ repoDigests, repoTags, size }) => ({
        repoDigests,
        repoTags,
        sizeBytes: size,
      }));
      this.#at = clock.monotonic();
    } catch (err) {
      log.debug('images could not be listed for the node status', { err });
    }
    return this.#images;
  }
}
