// The two CRI services of one node, on one connection or, with a separate image endpoint, on two. Connections are made
// by the first call that needs them and made anew after the runtime restarts; there is nothing to keep alive here.
import type { Clock } from '../lib/clock.ts';
import { KubeletError, isFault } from '../lib/errors.ts';
import { GrpcChannel } from '../lib/grpc/channel.ts';
import { fullErrorText } from '../lib/grpc/status.ts';
import { parseEndpoint } from './endpoint.ts';
import { CgroupDriver } from './gen/cri.ts';
import { criImages, criRuntime, type CallInterceptor, type CriImages, type CriRuntime } from './services.ts';
import { stoppingOnce } from './stop-once.ts';
import { streamedImageLists, streamedRuntimeLists } from './streamed-lists.ts';

export type CriOptions = {
  readonly runtimeEndpoint: string;
  /** Empty means the runtime's endpoint. */
  readonly imageEndpoint: string;
  /** `runtimeRequestTimeout`. */
  readonly timeoutMs: number;
  readonly intercept?: CallInterceptor;
  /** Gate `CRIListStreaming`: lists come in parts where the runtime can do that. */
  readonly streamLists?: boolean;
};

export interface CriConnection {
  readonly runtime: CriRuntime;
  readonly images: CriImages;
  /** The runtime's own channel, for what it offers beside the CRI (containerd's events). */
  readonly channel: GrpcChannel;
  /** The same, or that of the separate image endpoint (containerd's content store). */
  readonly imageChannel: GrpcChannel;
  readonly runtimeEndpoint: string;
  readonly imageEndpoint: string;
  close(): void;
}

/** As upstream; some verbs have their own limits. */
const MAX_RECEIVE_BYTES = 16 * 1024 * 1024;
const CONNECT_TIMEOUT_MS = 5000;

export function openCri(clock: Clock, options: CriOptions): CriConnection {
  const open = (endpoint: string): GrpcChannel =>
    new GrpcChannel(clock, {
      target: parseEndpoint(endpoint),
      maxReceiveBytes: MAX_RECEIVE_BYTES,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
    });
  const channel = open(options.runtimeEndpoint);
  const shared = options.imageEndpoint === '' || options.imageEndpoint === options.runtimeEndpoint;
  const imageChannel = shared ? channel : open(options.imageEndpoint);
  const serviceOptions = {
    timeoutMs: options.timeoutMs,
    ...(options.intercept === undefined ? {} : { intercept: options.intercept }),
  };
  const runtime = stoppingOnce(criRuntime(channel, serviceOptions));
  const images = criImages(imageChannel, serviceOptions);
  const isStreamed = options.streamLists === true;
  return {
    runtime: isStreamed ? streamedRuntimeLists(channel, runtime, serviceOptions) : runtime,
    images: isStreamed ? streamedImageLists(imageChannel, images, serviceOptions) : images,
    channel,
    imageChannel,
    runtimeEndpoint: options.runtimeEndpoint,
    imageEndpoint: shared ? options.runtimeEndpoint : options.imageEndpoint,
    close: () => {
      channel.close();
      if (imageChannel !== channel) imageChannel.close();
    },
  };
}

export type RuntimeVersion = { readonly name: string; readonly version: string; readonly apiVersion: string };

export const CRI_VERSION = '0.1.0';

/** What must work before a kubelet starts: both services answer and speak our version of the CRI. */
export async function validateCri(cri: CriConnection, signal: AbortSignal): Promise<RuntimeVersion> {
  const problem = (service: string, endpoint: string, text: string, cause?: unknown): KubeletError =>
    new KubeletError(
      'unavailable',
      `validate CRI v1 ${service} API for endpoint ${JSON.stringify(endpoint)}: ${text}`,
      cause === undefined ? {} : { cause },
    );
  const answer = await cri.runtime.version({ version: CRI_VERSION }, signal).catch((err: unknown) => {
    throw problem('runtime', cri.runtimeEndpoint, fullErrorText(err), err);
  });
  if (answer.version !== CRI_VERSION || answer.runtimeName === '' || answer.runtimeVersion === '')
    throw problem('runtime', cri.runtimeEndpoint, `not a CRI ${CRI_VERSION} runtime: ${JSON.stringify(answer)}`);
  await cri.images.imageFsInfo({}, signal).catch((err: unknown) => {
    throw problem('image', cri.imageEndpoint, fullErrorText(err), err);
  });
  return { name: answer.runtimeName, version: answer.runtimeVersion, apiVersion: answer.runtimeApiVersion };
}

/** The runtime's cgroup driver; undefined where it does not say, and the configuration decides. */
export async function readCgroupDriver(
  runtime: Pick<CriRuntime, 'runtimeConfig'>,
  onUnimplemented: () => void,
  signal: AbortSignal,
): Promise<'systemd' | 'cgroupfs' | undefined> {
  try {
    const { linux } = await runtime.runtimeConfig({}, signal);
    if (linux === undefined) return undefined;
    return linux.cgroupDriver === CgroupDriver.SYSTEMD ? 'systemd' : 'cgroupfs';
  } catch (err) {
    if (!isFault(err, 'unimplemented')) throw err;
    onUnimplemented();
    return undefined;
  }
}

/**
 * The image sandboxes are made from, where the runtime tells (containerd does, in its verbose status). Runtimes that do
 * not pin it would lose it to image collection, and a node without a registry could then start no pod.
 */
export async function readSandboxImage(
  runtime: Pick<CriRuntime, 'status'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { info } = await runtime.status({ verbose: true }, signal);
  try {
    const config = JSON.parse(info['config'] ?? '{}') as { sandboxImage?: unknown };
    return typeof config.sandboxImage === 'string' && config.sandboxImage !== '' ? config.sandboxImage : undefined;
  } catch {
    // Free text that only people are meant to read.
    return undefined;
  }
}
