// Upstream's metrics about the two certificates.
import type { Clock } from '../lib/clock.ts';
import type { Registry } from '../lib/metrics.ts';
import type { CertificateManager } from './certificate-manager.ts';

export type CertificateMetricsDeps = {
  clock: Clock;
  client?: CertificateManager;
  server?: CertificateManager;
};

/** From a minute to four years. */
const LIFE_BUCKETS = [60, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000];

export function certificateMetrics(registry: Registry, { clock, client, server }: CertificateMetricsDeps): void {
  const ttlSeconds = (manager: CertificateManager): number =>
    manager.valid === undefined ? Infinity : Math.trunc((manager.valid.notAfterMs - clock.now()) / 1000);
  if (client !== undefined) {
    registry.collected(
      'kubelet_certificate_manager_client_ttl_seconds',
      "[ALPHA] Gauge of the TTL (time-to-live) of the Kubelet's client certificate. The value is in seconds until certificate expiry (negative if already expired). If client certificate is invalid or unused, the value will be +INF.",
      'gauge',
      () => [[{}, ttlSeconds(client)]],
    );
    registry.collected(
      'kubelet_certificate_manager_client_expiration_renew_errors',
      '[ALPHA] Counter of certificate renewal errors.',
      'counter',
      () => [[{}, client.renewErrors]],
    );
  }
  if (server !== undefined) {
    registry.collected(
      'kubelet_certificate_manager_server_ttl_seconds',
      "[ALPHA] Gauge of the shortest TTL (time-to-live) of the Kubelet's serving certificate. The value is in seconds until certificate expiry (negative if already expired). If serving certificate is invalid or unused, the value will be +INF.",
      'gauge',
      () => [[{}, ttlSeconds(server)]],
    );
    registry.collected(
      'kubelet_server_expiration_renew_errors',
      '[ALPHA] Counter of certificate renewal errors.',
      'counter',
      () => [[{}, server.renewErrors]],
    );
    const lived = registry.histogram(
      'kubelet_certificate_manager_server_rotation_seconds',
      '[ALPHA] Histogram of the number of seconds the previous certificate lived before being rotated.',
      [],
      LIFE_BUCKETS,
    );
    server.onReplaced((livedMs) => lived.observe(livedMs / 1000));
  }
}
