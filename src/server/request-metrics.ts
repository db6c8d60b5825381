// kubelet_http_*: how many requests, how long, how many at once. Labels come from closed lists, never from a request.
import type { Clock } from '../lib/clock.ts';
import { DEFAULT_BUCKETS, type Registry } from '../lib/metrics.ts';
import type { RequestObserver } from './listener.ts';

const PATHS = new Set([
  'attach',
  'checkpoint',
  'configz',
  'containerLogs',
  'debug',
  'exec',
  'flagz',
  'healthz',
  'logs',
  'manifests',
  'metrics',
  'metrics/cadvisor',
  'metrics/probes',
  'metrics/resource',
  'metrics/slis',
  'pods',
  'portForward',
  'problems',
  'run',
  'runningpods',
  'stats',
  'statusz',
]);
const METHODS = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE']);
/** As upstream has it: port-forward is not among them. */
const LONG_RUNNING = new Set(['attach', 'debug', 'exec']);

export function pathLabel(path: string): string {
  const [root = '', below] = path.slice(1).split('/');
  const name = root === 'metrics' && below !== undefined ? `metrics/${below}` : root;
  return PATHS.has(name) ? name : 'other';
}

export const methodLabel = (method: string): string => (METHODS.has(method) ? method : 'other');

export class RequestMetrics {
  readonly #clock: Clock;
  readonly #total;
  readonly #seconds;
  readonly #inflight;

  constructor(clock: Clock, registry: Registry) {
    const labels = ['method', 'path', 'server_type', 'long_running'];
    this.#clock = clock;
    this.#total = registry.counter(
      'kubelet_http_requests_total',
      '[ALPHA] Number of the http requests received since the server started',
      labels,
    );
    this.#seconds = registry.histogram(
      'kubelet_http_requests_duration_seconds',
      '[ALPHA] Duration in seconds to serve http requests',
      labels,
      DEFAULT_BUCKETS,
    );
    this.#inflight = registry.gauge(
      'kubelet_http_inflight_requests',
      '[ALPHA] Number of the inflight http requests',
      labels,
    );
  }

  observer(serverType: 'readonly' | 'readwrite'): RequestObserver {
    return (method, path) => {
      const label = pathLabel(path);
      const labels = {
        method: methodLabel(method),
        path: label,
        server_type: serverType,
        long_running: String(LONG_RUNNING.has(label)),
      };
      const began = this.#clock.monotonic();
      this.#total.inc(labels);
      this.#inflight.add(1, labels);
      return () => {
        this.#inflight.add(-1, labels);
        this.#seconds.observe((this.#clock.monotonic() - began) / 1000, labels);
      };
    };
  }
}
