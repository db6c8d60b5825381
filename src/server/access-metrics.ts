// Who is let in, in figures: questions to the API server about access, and how long callers' certificates are still good.
import type { Registry } from '../lib/metrics.ts';

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
  readonly reviewed: (code: string, seconds: number) => void;
  readonly certificateLifetime: (leftMs: number) => void;
};

export function accessMetrics(registry: Registry): AccessMetrics {
  const total = registry.counter(
    'apiserver_delegated_authz_request_total',
    '[ALPHA] Number of HTTP requests partitioned by status code.',
    ['code'],
  );
  const duration = registry.histogram(
    'apiserver_delegated_authz_request_duration_seconds',
    '[ALPHA] Request latency in seconds. Broken down by status code.',
    ['code'],
    DURATIONS,
  );
  const lifetime = registry.histogram(
    'apiserver_client_certificate_expiration_seconds',
    '[ALPHA] Distribution of the remaining lifetime on the certificate used to authenticate a request.',
    [],
    LIFETIMES,
  );
  return {
    reviewed: (code, seconds) => {
      total.inc({ code });
      duration.observe(seconds, { code });
    },
    certificateLifetime: (leftMs) => lifetime.observe(leftMs / 1000),
  };
}
