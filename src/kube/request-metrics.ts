// Requests to the API server in the figures every Kubernetes client has.
import type { Registry } from '../lib/metrics.ts';
import type { RequestObserver } from './client.ts';

/** 64 bytes to 16 MiB. */
const SIZE_BUCKETS = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];
const DURATION_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

export function requestMetrics(metrics: Registry): RequestObserver {
  const total = metrics.counter(
    'rest_client_requests_total',
    '[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.',
    ['code', 'host', 'method'],
  );
  const retries = metrics.counter(
    'rest_client_request_retries_total',
    '[ALPHA] Number of request retries, partitioned by status code, verb, and host.',
    ['code', 'host', 'verb'],
  );
  const duration = metrics.histogram(
    'rest_client_request_duration_seconds',
    '[ALPHA] Request latency in seconds. Broken down by verb, and host.',
    ['host', 'verb'],
    DURATION_BUCKETS,
  );
  const waited = metrics.histogram(
    'rest_client_rate_limiter_duration_seconds',
    '[ALPHA] Client side rate limiter latency in seconds. Broken down by verb, and host.',
    ['host', 'verb'],
    DURATION_BUCKETS,
  );
  const sent = metrics.histogram(
    'rest_client_request_size_bytes',
    '[ALPHA] Request size in bytes. Broken down by verb and host.',
    ['host', 'verb'],
    SIZE_BUCKETS,
  );
  const received = metrics.histogram(
    'rest_client_response_size_bytes',
    '[ALPHA] Response size in bytes. Broken down by verb and host.',
    ['host', 'verb'],
    SIZE_BUCKETS,
  );
  return {
    attempt: ({ method, code, host, exchange, isRepeat }) => {
      total.inc({ code, host, method });
      const labels = { host, verb: method };
      if (isRepeat) retries.inc({ code, ...labels });
      if (exchange === undefined) return;
      waited.observe(exchange.waitedMs / 1000, labels);
      sent.observe(exchange.sentBytes, labels);
    },
    request: ({ method, host, ms, receivedBytes }) => {
      const labels = { host, verb: method };
      duration.observe(ms / 1000, labels);
      if (receivedBytes !== undefined) received.observe(receivedBytes, labels);
    },
  };
}
