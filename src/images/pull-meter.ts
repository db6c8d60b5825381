// Measures pulls while they last. The CRI tells nothing of a pull before it is over, so containerd's content store is
// read (once a second, only while something is being pulled); with other runtimes the growth of the image filesystem is
// all there is, against the size that the registry tells. What cannot be measured costs nobody their image.
import type { Ingest, LayerSize, StoredManifest } from '../cri/containerd-content.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Wake } from '../lib/wake.ts';
import type { RegistryLogin } from './keyring.ts';
import type { LayerProgress, PullProgress } from './pull-progress.ts';
import { progressOf, PullRate } from './pull-rate.ts';

/** ContainerdContent fits. */
export interface ContentStore {
  ingests(signal: AbortSignal): Promise<readonly Ingest[]>;
  manifestsFrom(registry: string, signal: AbortSignal): Promise<readonly StoredManifest[]>;
  layersOf(digest: string, signal: AbortSignal): Promise<readonly LayerSize[] | undefined>;
  isPresent(digest: string, signal: AbortSignal): Promise<boolean>;
}

export type PullMeterDeps = {
  readonly content: ContentStore;
  /** Free bytes where images are kept. */
  readonly freeBytes: (signal: AbortSignal) => Promise<number>;
  /** What is to be downloaded; undefined where the registry does not tell. Absent: it is not to be asked. */
  readonly sizeOf?: (
    image: string,
    logins: readonly RegistryLogin[],
    signal: AbortSignal,
  ) => Promise<number | undefined>;
  readonly clock: Clock;
  readonly log: Logger;
};

type Metered = {
  /** `docker.io/library/busybox` */
  readonly repository: string;
  readonly logins: readonly RegistryLogin[];
  readonly startedAtMs: number;
  waiters: number;
  readonly rate: PullRate;
  manifest: string | undefined;
  layers: readonly LayerSize[] | undefined;
  /** Digests that are in the store. */
  readonly present: Set<string>;
  /** Digests to be looked up: not seen being downloaded, not known to be there. */
  readonly unsure: Set<string>;
  freeAtStart: number | undefined;
  /** `later` until the pull has lasted long enough to be worth a question. */
  size: 'later' | number | undefined;
  progress: PullProgress | undefined;
};

const EVERY_MS = 1000;
/** The manifest of a pull may have been stored a moment before the pull was noticed here. */
const CLOCK_SLACK_MS = 2000;
const IDLE_MS = 3_600_000;
/** Shorter pulls are not worth a question to their registry. */
const ASK_SIZE_MS = 5000;

export class PullMeter implements Runnable {
  readonly name = 'pull-meter';
  readonly #deps: PullMeterDeps;
  readonly #pulls = new Map<string, Metered>();
  readonly #wake = new Wake();
  #hasContentStore = true;

  constructor(deps: PullMeterDeps) {
    this.#deps = deps;
  }

  /** A pull of this image begins; the answer is called when it is over. */
  begin(image: string, repository: string, logins: readonly RegistryLogin[] = []): () => void {
    const { clock } = this.#deps;
    let pull = this.#pulls.get(image);
    if (pull === undefined) {
      pull = {
        repository,
        logins,
        startedAtMs: clock.now(),
        waiters: 0,
        rate: new PullRate(),
        manifest: undefined,
        layers: undefined,
        present: new Set(),
        unsure: new Set(),
        freeAtStart: undefined,
        size: 'later',
        progress: undefined,
      };
      this.#pulls.set(image, pull);
    }
    const own = pull;
    own.waiters++;
    this.#wake.wake();
    return () => {
      if (--own.waiters === 0 && this.#pulls.get(image) === own) this.#pulls.delete(image);
    };
  }

  progressOf(image: string): PullProgress | undefined {
    return this.#pulls.get(image)?.progress;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!signal.aborted) {
      if (this.#pulls.size === 0) {
        await this.#wake.rest(clock, IDLE_MS, signal);
        continue;
      }
      try {
        await this.read(signal);
      } catch (err) {
        if (!signal.aborted) log.debug('the progress of pulls cannot be read', { err });
      }
      await clock.sleep(EVERY_MS, signal);
    }
  }

  /** One look at everything that is being pulled. */
  async read(signal: AbortSignal): Promise<void> {
    if (this.#hasContentStore)
      try {
        return await this.#readContent(signal);
      } catch (err) {
        if (!isFault(err, 'unimplemented')) throw err;
        this.#hasContentStore = false;
      }
    await this.#readDisk(signal);
  }

  async #readContent(signal: AbortSignal): Promise<void> {
    const ingests = new Map((await this.#deps.content.ingests(signal)).map((i) => [i.digest, i]));
    for (const pull of this.#pulls.values()) {
      if (pull.layers === undefined) await this.#findLayers(pull, ingests, signal);
      if (pull.layers !== undefined) await this.#measure(pull, pull.layers, ingests, signal);
    }
  }

  async #findLayers(pull: Metered, ingests: ReadonlyMap<string, Ingest>, signal: AbortSignal): Promise<void> {
    const { content } = this.#deps;
    const slash = pull.repository.indexOf('/');
    const manifests = await content.manifestsFrom(pull.repository.slice(0, slash), signal);
    const chosen = chooseManifest(manifests, {
      path: pull.repository.slice(slash + 1),
      sinceMs: pull.startedAtMs - CLOCK_SLACK_MS,
      downloading: (digest) => ingests.has(digest),
      taken: (digest) => [...this.#pulls.values()].some((other) => other !== pull && other.manifest === digest),
    });
    if (chosen === undefined) return;
    pull.manifest = chosen;
    pull.layers = await content.layersOf(chosen, signal);
    for (const { digest } of pull.layers ?? []) pull.unsure.add(digest);
  }

  async #measure(
    pull: Metered,
    layers: readonly LayerSize[],
    ingests: ReadonlyMap<string, Ingest>,
    signal: AbortSignal,
  ): Promise<void> {
    // A layer is asked about at first, and again whenever its download has vanished from the list.
    for (const digest of pull.unsure) {
      if (ingests.has(digest)) continue;
      pull.unsure.delete(digest);
      if (await this.#deps.content.isPresent(digest, signal)) pull.present.add(digest);
    }
    for (const { digest } of layers) if (ingests.has(digest)) pull.unsure.add(digest);
    const measured = layers.map(({ digest, sizeBytes }): LayerProgress => {
      const done = pull.present.has(digest);
      const doneBytes = done ? sizeBytes : Math.min(sizeBytes, ingests.get(digest)?.doneBytes ?? 0);
      return { digest, doneBytes, totalBytes: sizeBytes, done };
    });
    const sum = (of: (layer: LayerProgress) => number): number => measured.reduce((all, l) => all + of(l), 0);
    const doneBytes = sum((l) => l.doneBytes);
    pull.rate.add(this.#deps.clock.monotonic(), doneBytes);
    const totalBytes = sum((l) => l.totalBytes);
    pull.progress = progressOf('layers', { doneBytes, totalBytes, layers: measured }, pull.rate);
  }

  /** Of several pulls at once nobody can say whose bytes they are; where others free more, nothing can be said at all. */
  async #readDisk(signal: AbortSignal): Promise<void> {
    const free = await this.#deps.freeBytes(signal);
    for (const [image, pull] of this.#pulls) {
      pull.freeAtStart ??= free;
      const doneBytes = pull.freeAtStart - free;
      if (this.#pulls.size > 1 || doneBytes <= 0) {
        pull.progress = undefined;
        continue;
      }
      pull.rate.add(this.#deps.clock.monotonic(), doneBytes);
      const totalBytes = await this.#size(image, pull, signal);
      // What is unpacked already takes more room than it took on its way: then only the rate can be told.
      pull.progress =
        totalBytes === undefined || doneBytes >= totalBytes
          ? progressOf('disk', { doneBytes }, pull.rate)
          : progressOf('size', { doneBytes, totalBytes }, pull.rate);
    }
  }

  /** Asked once for each pull. */
  async #size(image: string, pull: Metered, signal: AbortSignal): Promise<number | undefined> {
    const { clock, sizeOf, log } = this.#deps;
    if (pull.size !== 'later') return pull.size;
    if (sizeOf === undefined || clock.now() - pull.startedAtMs < ASK_SIZE_MS) return undefined;
    pull.size = undefined;
    try {
      pull.size = await sizeOf(image, pull.logins, signal);
    } catch (err) {
      if (!signal.aborted) log.debug('the registry does not tell the size of an image', { image, err: messageOf(err) });
    }
    return pull.size;
  }
}

type Wanted = {
  readonly path: string;
  readonly sinceMs: number;
  readonly downloading: (digest: string) => boolean;
  /** Another pull of the same repository works on it. */
  readonly taken: (digest: string) => boolean;
};

/** The manifest that a pull is working on: one of the repository with a layer under way, else one that just came. */
export function chooseManifest(manifests: readonly StoredManifest[], wanted: Wanted): string | undefined {
  const own = manifests
    .filter((m) => m.repositories.includes(wanted.path) && !wanted.taken(m.digest))
    .sort((a, b) => b.createdAtMs - a.createdAtMs);
  const chosen = own.find((m) => m.layers.some(wanted.downloading)) ?? own.find((m) => m.createdAtMs >= wanted.sinceMs);
  return chosen?.digest;
}
