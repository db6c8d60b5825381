// Takes unused images away when they are too old or the disk too full, and keeps the list of images that node status
// shows. Never removes what is pinned, what any container (dead ones too) was made from, or what a known static pod wants.
import type { Image } from '../cri/gen/cri.ts';
import type { CriImages } from '../cri/services.ts';
import type { EventRecorder } from '../core/events.ts';
import { containersOf, isStaticPod, type Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError, messageOf } from '../lib/errors.ts';
import { fullErrorText } from '../lib/grpc/status.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Counter, Registry } from '../lib/metrics.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Wake } from '../lib/wake.ts';
import {
  bytesToFree,
  evictionOrder,
  insufficientText,
  oldEnough,
  tooOld,
  type DiskUsage,
  type SeenImage,
} from './image-gc-plan.ts';
import { withDefaultTag, parseImageName } from './reference.ts';

export interface ObservedPods {
  readonly ready: boolean;
  all(): readonly PodSnapshot[];
}

export type ImageGcDeps = {
  readonly images: CriImages;
  readonly observed: ObservedPods;
  /** Every pod the node is asked to run. */
  readonly desired: { all(): readonly Pod[] };
  readonly records: { prune(presentRefs: ReadonlySet<string>, listedAtMs: number): Promise<void> };
  readonly disk: (signal: AbortSignal) => Promise<DiskUsage>;
  readonly events: EventRecorder;
  readonly infra: { readonly clock: Clock; readonly log: Logger; readonly registry: Registry };
};

export type ImageGcOptions = {
  readonly highThresholdPercent: number;
  readonly lowThresholdPercent: number;
  readonly minAgeMs: number;
  /** 0 switches age-based collection off. */
  readonly maxAgeMs: number;
  /** Images to keep whatever happens: the sandbox image of runtimes that do not pin it, an operator's own list. */
  readonly keep?: readonly string[];
};

const GC_EVERY_MS = 5 * 60_000;
const LIST_EVERY_MS = 30_000;
/** The first collection comes soon after the start, once it is known what runs. */
const FIRST_GC_MS = 10_000;

export class ImageGc implements Runnable {
  readonly name = 'image-gc';
  readonly #deps: ImageGcDeps;
  readonly #o: ImageGcOptions;
  readonly #collected: Counter;
  readonly #seen = new Map<string, { firstDetectedMs: number; lastUsedMs: number }>();
  readonly #wake = new Wake();
  #list: readonly Image[] = [];
  #beganMs: number | undefined;
  #failedBefore = false;

  constructor(deps: ImageGcDeps, options: ImageGcOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#collected = deps.infra.registry.counter(
      'kubelet_image_garbage_collected_total',
      '[ALPHA] Total number of images garbage collected by the kubelet, whether through disk usage or image age.',
      ['reason'],
    );
  }

  /** The node's images as last listed (every 30 s), largest first. */
  list(): readonly Image[] {
    return this.#list;
  }

  /** Ids in the order in which collection would take them, as far as is known without asking anew. */
  collectOrder(): readonly string[] {
    const used = this.#namesInUse();
    const seen = this.#list.map((image) => this.#seenImage(image, used));
    return evictionOrder(seen).map((i) => i.id);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps.infra;
    this.#beganMs = clock.monotonic();
    await Promise.all([
      runEvery(
        clock,
        log,
        { name: 'image-list', everyMs: LIST_EVERY_MS },
        async (s) => void (await this.#refreshList(s)),
        signal,
      ),
      runEvery(
        clock,
        log,
        { name: 'image-detect', everyMs: GC_EVERY_MS },
        async (s) => void (await this.#detect(clock.monotonic(), s)),
        signal,
      ),
      this.#collectLoop(signal),
    ]);
  }

  /** Collects without waiting for the next turn: the thresholds changed. */
  collectSoon(): void {
    this.#wake.wake();
  }

  /** One collection: first what is too old, then for space. Throws when space could not be freed. */
  async collect(signal: AbortSignal): Promise<void> {
    if (!this.#deps.observed.ready) return;
    const nowMs = this.#deps.infra.clock.monotonic();
    let candidates = evictionOrder(await this.#detect(nowMs, signal));
    candidates = await this.#collectOld(candidates, nowMs, signal);
    const disk = await this.#deps.disk(signal);
    if (disk.capacityBytes === 0) {
      const text = 'invalid capacity 0 on image filesystem';
      this.#deps.events.node('Warning', 'InvalidDiskCapacity', text);
      throw new KubeletError('internal', text);
    }
    const wanted = bytesToFree(disk, this.#o.highThresholdPercent, this.#o.lowThresholdPercent);
    if (wanted <= 0) return;
    const freed = await this.#free(oldEnough(candidates, nowMs, this.#o.minAgeMs), wanted, 'space', signal);
    if (freed >= wanted) return;
    const text = insufficientText(disk, freed);
    this.#deps.events.node('Warning', 'FreeDiskSpaceFailed', text);
    throw new KubeletError('exhausted', text);
  }

  /** For eviction: all unused images go, young ones excepted. Says how much that freed. */
  async deleteUnused(signal: AbortSignal): Promise<number> {
    if (!this.#deps.observed.ready) return 0;
    const nowMs = this.#deps.infra.clock.monotonic();
    const candidates = evictionOrder(await this.#detect(nowMs, signal));
    return this.#free(oldEnough(candidates, nowMs, this.#o.minAgeMs), Infinity, 'space', signal);
  }

  async #collectLoop(signal: AbortSignal): Promise<void> {
    for (let pauseMs = FIRST_GC_MS; ; pauseMs = this.#deps.observed.ready ? GC_EVERY_MS : FIRST_GC_MS) {
      await this.#wake.rest(this.#deps.infra.clock, pauseMs, signal);
      if (signal.aborted) return;
      const off = this.#o.highThresholdPercent === 100 && this.#o.maxAgeMs === 0;
      if (!off) await this.#tick(signal);
    }
  }

  /** A first failure is often passed by the next try; only then do people hear of it. */
  async #tick(signal: AbortSignal): Promise<void> {
    try {
      await this.collect(signal);
      this.#failedBefore = false;
    } catch (err) {
      if (signal.aborted) return;
      this.#deps.infra.log.error('image garbage collection failed', { err });
      if (this.#failedBefore) this.#deps.events.node('Warning', 'ImageGCFailed', messageOf(err));
      this.#failedBefore = true;
    }
  }

  async #refreshList(signal: AbortSignal): Promise<readonly Image[]> {
    const { images } = await this.#deps.images.listImages({}, signal);
    this.#list = [...images].sort((a, b) => b.size - a.size);
    return this.#list;
  }

  /**
   * Looks which images there are and which are used, and remembers when. Ages are told from the same `nowMs`. Whoever removed an
   * image, its record goes too.
   */
  async #detect(nowMs: number, signal: AbortSignal): Promise<readonly SeenImage[]> {
    // Records outlive the agent, so they have wall times.
    const listedAtMs = this.#deps.infra.clock.now();
    const list = await this.#refreshList(signal);
    const used = this.#namesInUse();
    const present = new Set(list.map((i) => i.id));
    await this.#deps.records.prune(present, listedAtMs);
    for (const id of this.#seen.keys()) if (!present.has(id)) this.#seen.delete(id);
    const seen = list.map((image): SeenImage => {
      const times = this.#seen.get(image.id) ?? { firstDetectedMs: nowMs, lastUsedMs: 0 };
      this.#seen.set(image.id, times);
      const found = this.#seenImage(image, used);
      if (!found.inUse) return found;
      times.lastUsedMs = nowMs;
      return { ...found, lastUsedMs: nowMs };
    });
    return seen;
  }

  #seenImage(image: Image, used: ReadonlySet<string>): SeenImage {
    const inUse = [image.id, ...image.repoTags, ...image.repoDigests].some((name) => used.has(name));
    const { firstDetectedMs = 0, lastUsedMs = 0 } = this.#seen.get(image.id) ?? {};
    return { id: image.id, sizeBytes: image.size, pinned: image.pinned, inUse, firstDetectedMs, lastUsedMs };
  }

  /** Every way a container or pod may name its image. */
  #namesInUse(): ReadonlySet<string> {
    const names = new Set<string>();
    for (const pod of this.#deps.observed.all())
      for (const c of pod.containers) for (const name of [c.imageId, c.imageRef, c.image]) names.add(name);
    for (const pod of this.#deps.desired.all())
      for (const image of imagesToKeep(pod)) for (const n of spellings(image)) names.add(n);
    for (const image of this.#o.keep ?? []) for (const n of spellings(image)) names.add(n);
    names.delete('');
    return names;
  }

  async #collectOld(
    candidates: readonly SeenImage[],
    nowMs: number,
    signal: AbortSignal,
  ): Promise<readonly SeenImage[]> {
    const { maxAgeMs } = this.#o;
    if (maxAgeMs === 0 || this.#beganMs === undefined || nowMs - this.#beganMs <= maxAgeMs) return candidates;
    const old = new Set(tooOld(candidates, nowMs, maxAgeMs));
    await this.#free([...old], Infinity, 'age', signal);
    return candidates.filter((i) => !old.has(i));
  }

  async #free(
    images: readonly SeenImage[],
    wanted: number,
    reason: 'age' | 'space',
    signal: AbortSignal,
  ): Promise<number> {
    const errors: string[] = [];
    let freed = 0;
    for (const image of images) {
      if (freed >= wanted) break;
      try {
        await this.#deps.images.removeImage({ image: { image: image.id } }, signal);
        freed += image.sizeBytes;
        this.#seen.delete(image.id);
        this.#collected.inc({ reason });
        this.#deps.infra.log.info('unused image removed', { image: image.id, bytes: image.sizeBytes, reason });
      } catch (err) {
        signal.throwIfAborted();
        if (!isFault(err, 'notFound')) errors.push(fullErrorText(err));
      }
    }
    if (errors.length > 0 && freed < wanted) {
      const what = Number.isFinite(wanted) ? `wanted to free ${wanted} bytes, but ` : '';
      throw new KubeletError(
        'internal',
        `${what}freed ${freed} bytes space with errors in image deletion: ${errors.join(', ')}`,
      );
    }
    return freed;
  }
}

/** Image volumes of every pod, and all images of static pods: nobody could pull those again on an isolated node. */
function* imagesToKeep(pod: Pod): Iterable<string> {
  for (const volume of pod.spec.volumes ?? []) if (volume.image?.reference !== undefined) yield volume.image.reference;
  if (isStaticPod(pod))
    for (const { container } of containersOf(pod)) if (container.image !== undefined) yield container.image;
}

/** As written, with its tag, and fully qualified: runtimes list images under the last form. */
function spellings(image: string): readonly string[] {
  try {
    const tagged = withDefaultTag(image);
    const { repository, tag, digest } = parseImageName(tagged);
    const full =
      digest === undefined
        ? [`${repository}:${tag}`]
        : [`${repository}@${digest}`, ...(tag === undefined ? [] : [`${repository}:${tag}`])];
    return [image, tagged, ...full];
  } catch {
    // A name nobody can pull keeps no image.
    return [];
  }
}
