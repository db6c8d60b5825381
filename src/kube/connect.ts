// One API server, five clients that differ in budget, deadline and connection: `objects` is `main` for watches of single
// objects, which may be refused for want of room, `heartbeat` has a connection of its own, and `reviews` a budget of its own.
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Registry } from '../lib/metrics.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import { KubeClient, type CallObserver, type ClientOptions, type RequestObserver } from './client.ts';
import { credentialsFor, type Credentials } from './credentials.ts';
import type { ClusterAccess } from './kubeconfig.ts';
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

const HEARTBEAT_TIMEOUT_SECONDS = 10;

export function connectApi(deps: ConnectDeps, access: ClusterAccess, o: ConnectOptions): ApiConnection {
  const { clock, log } = deps;
  const credentials = deps.credentials ?? credentialsFor(access, { clock, log });
  const userAgent = `kubelet/${o.version} (linux/${o.architecture}) kubernetes/ts`;
  const transport = new Transport({ clock, credentials }, access, { userAgent });
  const observe = deps.metrics === undefined ? undefined : requestMetrics(deps.metrics);
  const told = {
    ...(observe === undefined ? {} : { observe }),
    ...(deps.begin === undefined ? {} : { begin: deps.begin }),
  };
  const client = (limiter: TokenBucket, options: ClientOptions = {}): KubeClient =>
    new KubeClient({ clock, transport, limiter, ...told }, options);
  const shared = new TokenBucket(clock, o.qps, o.burst);
  const seconds = Math.min(HEARTBEAT_TIMEOUT_SECONDS, o.leaseDurationSeconds);
  return {
    transport,
    main: client(shared),
    objects: client(shared, { optionalWatches: true }),
    reviews: client(new TokenBucket(clock, o.qps, o.burst)),
    events: client(new TokenBucket(clock, o.eventQps, o.eventBurst)),
    heartbeat: client(new TokenBucket(clock, -1, 0), {
      timeoutMs: seconds * 1000,
      sendTimeout: `${seconds}s`,
      lane: 'heartbeat',
    }),
  };
}

/** 64 bytes to 16 MiB. */
const SIZE_BUCKETS = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];
const DURATION_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

function requestMetrics(metrics: Registry): RequestObserver {
  const total = metrics.counter(
    'rest_client_requests_total',
    'Number of HTTP requests, partitioned by status code, method, and host.',
    ['code', 'host', 'method'],
  );
  const duration = metrics.histogram(
    'rest_client_request_duration_seconds',
    'Request latency in seconds. Broken down by verb, and host.',
    ['host', 'verb'],
    DURATION_BUCKETS,
  );
  const waited = metrics.histogram(
    'rest_client_rate_limiter_duration_seconds',
    'Client side rate limiter latency in seconds. Broken down by verb, and host.',
    ['host', 'verb'],
    DURATION_BUCKETS,
  );
  const [sent, received] = (['request', 'response'] as const).map((what) =>
    metrics.histogram(
      `rest_client_${what}_size_bytes`,
      `${what === 'request' ? 'Request' : 'Response'} size in bytes. Broken down by verb and host.`,
      ['host', 'verb'],
      SIZE_BUCKETS,
    ),
  );
  return ({ method, code, host, exchange }) => {
    total.inc({ code, host, method });
    if (exchange === undefined) return;
    const labels = { host, verb: method };
    duration.observe(exchange.ms / 1000, labels);
    waited.observe(exchange.waitedMs / 1000, labels);
    sent?.observe(exchange.sentBytes, labels);
    received?.observe(exchange.receivedBytes, labels);
  };
}
