// One API server, five clients that differ in budget, deadline and connection: `objects` is `main` for watches of single
// objects, which may be refused for want of room, `heartbeat` has a connection of its own, and `reviews` a budget of its own.
import { formatDurationMs } from '../core/duration.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Registry } from '../lib/metrics.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import { Authority } from './authority.ts';
import { KubeClient, type CallObserver, type ClientOptions } from './client.ts';
import { credentialsFor, type Credentials } from './credentials.ts';
import type { ClusterAccess } from './kubeconfig.ts';
import { requestMetrics } from './request-metrics.ts';
import { ThrottleLog } from './throttle-log.ts';
import { Transport } from './transport.ts';

export type ConnectDeps = {
  clock: Clock;
  log: Logger;
  metrics?: Registry;
  /** Told of every call as it begins. */
  begin?: CallObserver;
  /** Instead of the kubeconfig's own: the certificate manager's, which rotate. */
  credentials?: Credentials;
};

export type ConnectOptions = {
  /** `v1.36.4` */
  version: string;
  /** GOARCH. */
  architecture: string;
  qps: number;
  burst: number;
  eventQps: number;
  eventBurst: number;
  leaseDurationSeconds: number;
  /** `nodeStatusUpdateFrequency` */
  statusUpdateMs: number;
};

export type ApiConnection = {
  readonly transport: Transport;
  readonly main: KubeClient;
  readonly objects: KubeClient;
  readonly events: KubeClient;
  readonly heartbeat: KubeClient;
  /** Questions about callers of our port: strangers may ask many, and spend nobody else's budget. */
  readonly reviews: KubeClient;
};

/** A heartbeat that takes longer than until the next one is of no use. */
export const heartbeatTimeoutMs = (o: Pick<ConnectOptions, 'leaseDurationSeconds' | 'statusUpdateMs'>): number =>
  Math.max(1, Math.min(o.statusUpdateMs, o.leaseDurationSeconds * 1000));

export function connectApi(deps: ConnectDeps, access: ClusterAccess, o: ConnectOptions): ApiConnection {
  const { clock, log } = deps;
  const credentials = deps.credentials ?? credentialsFor(access, { clock, log });
  const userAgent = `kubelet/${o.version} (linux/${o.architecture}) kubernetes/ts`;
  const authority = new Authority({ log }, access);
  const transport = new Transport({ clock, credentials, authority }, access, { userAgent });
  const observe = deps.metrics === undefined ? undefined : requestMetrics(deps.metrics);
  const told = {
    ...(observe === undefined ? {} : { observe }),
    ...(deps.begin === undefined ? {} : { begin: deps.begin }),
  };
  const throttled = new ThrottleLog({ clock, log });
  const client = (limiter: TokenBucket, limit: string, options: ClientOptions = {}): KubeClient => {
    const waited = (ms: number, verb: string, path: string): void => throttled.waited({ ms, verb, path, limit });
    return new KubeClient({ clock, transport, limiter, waited, ...told }, options);
  };
  const shared = new TokenBucket(clock, o.qps, o.burst);
  const limit = `kubeAPIQPS=${o.qps}`;
  const timeoutMs = heartbeatTimeoutMs(o);
  return {
    transport,
    main: client(shared, limit),
    objects: client(shared, limit, { optionalWatches: true }),
    reviews: client(new TokenBucket(clock, o.qps, o.burst), limit),
    events: client(new TokenBucket(clock, o.eventQps, o.eventBurst), `eventRecordQPS=${o.eventQps}`),
    heartbeat: client(new TokenBucket(clock, -1, 0), 'none', {
      timeoutMs,
      sendTimeout: formatDurationMs(timeoutMs),
      lane: 'heartbeat',
    }),
  };
}
