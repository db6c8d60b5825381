// The CRI verbs as typed calls, each with its deadline. Requests may leave fields out; answers have every field.
import type { CallOptions, GrpcChannel } from '../lib/grpc/channel.ts';
import type { Rpc } from '../lib/grpc/rpc.ts';
import type { Partially } from '../lib/proto/codec.ts';
import { ImageService, RuntimeService, type ContainerEventResponse } from './gen/cri.ts';

type Verb<R> =
  R extends Rpc<infer Req, infer Res> ? (request: Partially<Req>, signal: AbortSignal) => Promise<Res> : never;
type Verbs<S, Stream extends keyof S> = { readonly [K in Exclude<keyof S, Stream>]: Verb<S[K]> };

type RuntimeStreams = Extract<keyof typeof RuntimeService, `stream${string}` | 'getContainerEvents'>;
type ImageStreams = Extract<keyof typeof ImageService, `stream${string}`>;

export interface CriRuntime extends Verbs<typeof RuntimeService, RuntimeStreams> {
  /** ExecSync for somebody who looks at the beginning of the output only: the rest is dropped as it comes. */
  execSyncBriefly: Verb<typeof RuntimeService.execSync>;
  /** Resolves when the runtime ends the stream; rejects with `unimplemented` where it has no events. */
  containerEvents(onEvent: (event: ContainerEventResponse) => void, signal: AbortSignal): Promise<void>;
}
export type CriImages = Verbs<typeof ImageService, ImageStreams>;

/** Called around every verb: metrics, traces, tests. */
export type CallInterceptor = <T>(verb: string, call: () => Promise<T>) => Promise<T>;

type Deadline = number | undefined | ((request: { readonly timeout?: number | undefined }) => number | undefined);

/** Milliseconds per verb for a given `runtimeRequestTimeout`; verbs not listed take that timeout itself. */
const deadlines = (timeoutMs: number): Record<string, Deadline> => ({
  runPodSandbox: 2 * timeoutMs,
  stopContainer: (r) => (r.timeout ?? 0) * 1000 + timeoutMs,
  execSync: (r) => ((r.timeout ?? 0) === 0 ? undefined : (r.timeout ?? 0) * 1000 + timeoutMs),
  checkpointContainer: (r) => Math.max(timeoutMs, (r.timeout ?? 0) * 1000),
  pullImage: undefined,
});

/** Lists of some ten thousand dead containers must still fit. */
const MAX_LIST_BYTES = 256 * 1024 * 1024;
const MAX_RECEIVE_BYTES: Readonly<Record<string, number>> = {
  listPodSandbox: MAX_LIST_BYTES,
  listContainers: MAX_LIST_BYTES,
  listImages: MAX_LIST_BYTES,
  listContainerStats: MAX_LIST_BYTES,
  listPodSandboxStats: MAX_LIST_BYTES,
  listPodSandboxMetrics: MAX_LIST_BYTES,
  // What a command printed comes whole, and a pod decides how much that is: as much as runtimes keep, and upstream takes.
  execSync: 16 * 1024 * 1024,
};

/** As much as upstream keeps of what a probe printed. */
const BRIEF_BYTES = 10 * 1024;

const passThrough: CallInterceptor = (_verb, call) => call();

export type ServiceOptions = { readonly timeoutMs: number; readonly intercept?: CallInterceptor };

function verbsOf<S extends Record<string, Rpc<unknown, unknown>>>(
  channel: GrpcChannel,
  service: S,
  options: ServiceOptions,
): Record<string, unknown> {
  const limits = deadlines(options.timeoutMs);
  const intercept = options.intercept ?? passThrough;
  const caller = (verb: string, rpc: Rpc<unknown, unknown>, more: Partial<CallOptions> = {}): unknown => {
    const most = MAX_RECEIVE_BYTES[verb];
    const bounds = { ...(most === undefined ? {} : { maxReceiveBytes: most }), ...more };
    const limit = verb in limits ? limits[verb] : options.timeoutMs;
    return (request: { readonly timeout?: number }, signal: AbortSignal): Promise<unknown> => {
      const deadlineMs = typeof limit === 'function' ? limit(request) : limit;
      const call: CallOptions = { signal, ...(deadlineMs === undefined ? {} : { deadlineMs }), ...bounds };
      return intercept(verb, () => channel.unary(rpc, request, call));
    };
  };
  const verbs: Record<string, unknown> = {};
  for (const [verb, rpc] of Object.entries(service)) verbs[verb] = caller(verb, rpc);
  const { execSync } = service;
  if (execSync !== undefined) verbs['execSyncBriefly'] = caller('execSync', execSync, { keepFieldBytes: BRIEF_BYTES });
  return verbs;
}

export function criRuntime(channel: GrpcChannel, options: ServiceOptions): CriRuntime {
  const verbs = verbsOf(channel, RuntimeService, options) as unknown as Omit<CriRuntime, 'containerEvents'>;
  const intercept = options.intercept ?? passThrough;
  return {
    ...verbs,
    containerEvents: (onEvent, signal) =>
      intercept('getContainerEvents', () =>
        channel.serverStream(RuntimeService.getContainerEvents, {}, { signal }, onEvent),
      ),
  };
}

export const criImages = (channel: GrpcChannel, options: ServiceOptions): CriImages =>
  verbsOf(channel, ImageService, options) as unknown as CriImages;
