// Lists as streams (gate `CRIListStreaming`): no list is too long for one message then. A runtime that does not have the
// streams says so once; from then on it is asked for whole lists.
import { isFault } from '../lib/errors.ts';
import type { GrpcChannel } from '../lib/grpc/channel.ts';
import type { Rpc } from '../lib/grpc/rpc.ts';
import { ImageService, RuntimeService } from './gen/cri.ts';
import type { CallInterceptor, CriImages, CriRuntime } from './services.ts';

type StreamOptions = { readonly timeoutMs: number; readonly intercept?: CallInterceptor };

class Streams {
  readonly #channel: GrpcChannel;
  readonly #o: StreamOptions;
  #isSupported = true;

  constructor(channel: GrpcChannel, options: StreamOptions) {
    this.#channel = channel;
    this.#o = options;
  }

  /** Everything the stream brings, or what `whole` answers where there is no such stream. */
  async collect<Req, Res, Item>(
    verb: string,
    rpc: Rpc<Req, Res>,
    request: Req,
    itemsOf: (part: Res) => readonly Item[],
    whole: () => Promise<Item[]>,
    signal: AbortSignal,
  ): Promise<Item[]> {
    if (!this.#isSupported) return whole();
    const items: Item[] = [];
    const { timeoutMs, intercept = (_verb, call) => call() } = this.#o;
    const receive = (): Promise<void> =>
      this.#channel.serverStream(rpc, request, { signal, deadlineMs: timeoutMs }, (part) => {
        for (const item of itemsOf(part)) items.push(item);
      });
    try {
      await intercept(verb, receive);
      return items;
    } catch (err) {
      if (!isFault(err, 'unimplemented')) throw err;
      this.#isSupported = false;
      return whole();
    }
  }
}

export function streamedRuntimeLists(channel: GrpcChannel, runtime: CriRuntime, options: StreamOptions): CriRuntime {
  const streams = new Streams(channel, options);
  const { streamPodSandboxes, streamContainers, streamContainerStats, streamPodSandboxStats } = RuntimeService;
  return {
    ...runtime,
    listPodSandbox: async (request, signal) => ({
      items: await streams.collect(
        'streamPodSandboxes',
        streamPodSandboxes,
        request as never,
        (part) => part.podSandboxes,
        () => runtime.listPodSandbox(request, signal).then((r) => r.items),
        signal,
      ),
    }),
    listContainers: async (request, signal) => ({
      containers: await streams.collect(
        'streamContainers',
        streamContainers,
        request as never,
        (part) => part.containers,
        () => runtime.listContainers(request, signal).then((r) => r.containers),
        signal,
      ),
    }),
    listContainerStats: async (request, signal) => ({
      stats: await streams.collect(
        'streamContainerStats',
        streamContainerStats,
        request as never,
        (part) => part.containerStats,
        () => runtime.listContainerStats(request, signal).then((r) => r.stats),
        signal,
      ),
    }),
    listPodSandboxStats: async (request, signal) => ({
      stats: await streams.collect(
        'streamPodSandboxStats',
        streamPodSandboxStats,
        request as never,
        (part) => part.podSandboxStats,
        () => runtime.listPodSandboxStats(request, signal).then((r) => r.stats),
        signal,
      ),
    }),
  };
}

export function streamedImageLists(channel: GrpcChannel, images: CriImages, options: StreamOptions): CriImages {
  const streams = new Streams(channel, options);
  return {
    ...images,
    listImages: async (request, signal) => ({
      images: await streams.collect(
        'streamImages',
        ImageService.streamImages,
        request as never,
        (part) => part.images,
        () => images.listImages(request, signal).then((r) => r.images),
        signal,
      ),
    }),
  };
}
