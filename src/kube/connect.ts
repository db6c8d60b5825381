// One API server, four clients: main, events, heartbeat and reviews share the connections and differ in budget and deadline.
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Registry } from '../lib/metrics.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import { KubeClient, type RequestObserver } from './client.ts';
import { credentialsFor, type Credentials } from './credentials.ts';
import type { ClusterAccess } from './kubeconfig.ts';
import { Transport } from './transport.ts';

export type ConnectDeps = {
  clock: Clock;
  log: Logger;
  metrics?: Registry;
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
  const client = (qps: number, burst: number, timeoutSeconds?: number): KubeClient =>
    new KubeClient(
      { clock, transport, limiter: new TokenBucket(clock, qps, burst), ...(observe === undefined ? {} : { observe }) },
      timeoutSeconds === undefined ? {} : { timeoutMs: timeoutSeconds * 1000, sendTimeout: `${timeoutSeconds}s` },
    );
  return {
    transport,
    main: client(o.qps, o.burst),
    reviews: client(o.qps, o.burst),
    events: client(o.eventQps, o.eventBurst),
    heartbeat: client(-1, 0, Math.min(HEARTBEAT_TIMEOUT_SECONDS, o.leaseDurationSeconds)),
  };
}

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
  return ({ method, verb, code, host, ms }) => {
    total.inc({ code, host, method });
    duration.observe(ms / 1000, { host, verb });
  };
}
