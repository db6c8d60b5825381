// Who is let in, in figures: questions to the API server about callers and their access, and how long callers' certificates are still good.
import type { Counter, Histogram, Registry } from '../lib/metrics.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;
const LIFETIMES = [
  0,
  HOUR / 2,
  HOUR,
  2 * HOUR,
  6 * HOUR,
  12 * HOUR,
  ...[1, 2, 4, 7, 30, 90, 180, 360].map((n) => n * DAY),
];
const DURATIONS = [0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10];

export type AccessMetrics = {
  readonly reviewed: (kind: 'authn' | 'authz', code: string, seconds: number) => void;
  readonly certificateLifetime: (leftMs: number) => void;
};

type Questions = { readonly total: Counter; readonly duration: Histogram };
const TOTAL = '[ALPHA] Number of HTTP requests partitioned by status code.';
const DURATION = '[ALPHA] Request latency in seconds. Broken down by status code.';

export function accessMetrics(registry: Registry): AccessMetrics {
  const total = (name: string): Counter => registry.counter(name, TOTAL, ['code']);
  const duration = (name: string): Histogram => registry.histogram(name, DURATION, ['code'], DURATIONS);
  const asked: Record<'authn' | 'authz', Questions> = {
    authn: {
      total: total('apiserver_delegated_authn_request_total'),
      duration: duration('apiserver_delegated_authn_request_duration_seconds'),
    },
    authz: {
      total: total('apiserver_delegated_authz_request_total'),
      duration: duration('apiserver_delegated_authz_request_duration_seconds'),
    },
  };
  const lifetime = registry.histogram(
    'apiserver_client_certificate_expiration_seconds',
    '[ALPHA] Distribution of the remaining lifetime on the certificate used to authenticate a request.',
    [],
    LIFETIMES,
  );
  return {
    reviewed: (kind, code, seconds) => {
      asked[kind].total.inc({ code });
      asked[kind].duration.observe(seconds, { code });
    },
    certificateLifetime: (leftMs) => lifetime.observe(leftMs / 1000),
  };
}
