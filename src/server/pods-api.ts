// The pods API on its unix socket (gate `PodsAPI`): the pods of this node as the kubelet sees them, for agents that must
// not depend on the API server.
import { podUid } from '../core/ids.ts';
import { aborted } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Rpc } from '../lib/grpc/rpc.ts';
import type { GrpcServer } from '../lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import { EventType, Pods, type WatchPodsEvent } from './gen/pods-api.ts';
import { serveLocalSocket } from './local-socket.ts';
import { encodePod } from './pod-wire.ts';
import type { PodsFeed, Watcher } from './pods-feed.ts';

const PER_SECOND = 100;
const BURST = 10;
/** What may wait for one watcher: about a hundred large pods. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const NOTHING = new Uint8Array(0);

export type PodsApiDeps = { readonly clock: Clock; readonly log: Logger; readonly feed: PodsFeed };

export class PodsApiServer implements Runnable {
  readonly name = 'pods-api';
  readonly #deps: PodsApiDeps;
  readonly #feed: PodsFeed;
  readonly #path: string;
  readonly #limit: TokenBucket;

  constructor(deps: PodsApiDeps, path: string) {
    this.#deps = deps;
    this.#feed = deps.feed;
    this.#path = path;
    this.#limit = new TokenBucket(deps.clock, PER_SECOND, BURST);
  }

  run(signal: AbortSignal): Promise<void> {
    const register = (server: GrpcServer): void => this.#register(server);
    return serveLocalSocket(this.#deps, { path: this.#path, register }, signal);
  }

  #register(server: GrpcServer): void {
    this.#limited(server, Pods.listPods, () => ({ pods: this.#feed.list().map(encodePod) }));
    this.#limited(server, Pods.getPod, ({ podUID }) => {
      const pod = this.#feed.get(podUid(podUID));
      if (pod === undefined) throw new GrpcError(GrpcCode.NotFound, `pod with UID ${podUID} not found`);
      return { pod: encodePod(pod) };
    });
    server.serverStream(Pods.watchPods, (_request, gone, send) => this.#watch(gone, send));
  }

  #limited<Req, Res>(server: GrpcServer, rpc: Rpc<Req, Res>, answer: (request: Req) => Res): void {
    server.unary(rpc, async (request) => {
      if (!this.#limit.tryTake()) throw new GrpcError(GrpcCode.ResourceExhausted, 'rejected by rate limit');
      return answer(request);
    });
  }

  /** First all there are, then a sign that these were all, then what changes. */
  async #watch(gone: AbortSignal, send: (event: WatchPodsEvent) => number): Promise<void> {
    const slow = Promise.withResolvers<never>();
    const watcher: Watcher = {
      tell: ({ type, pod }) => send({ type: EventType[type], pod: encodePod(pod) }) <= MAX_WAITING_BYTES,
      disconnect: () => slow.reject(new GrpcError(GrpcCode.ResourceExhausted, 'watch client channel closed')),
    };
    try {
      for (const pod of this.#feed.watch(watcher)) send({ type: EventType.ADDED, pod: encodePod(pod) });
      send({ type: EventType.INITIAL_SYNC_COMPLETE, pod: NOTHING });
      await Promise.race([aborted(gone), slow.promise]);
    } finally {
      this.#feed.unwatch(watcher);
    }
  }
}
