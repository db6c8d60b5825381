// How long calls to drivers take, under upstream's name.
import type { Histogram, Registry } from '../../lib/metrics.ts';

const BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

export class CsiMetrics {
  readonly #calls: Histogram;

  constructor(registry: Registry) {
    this.#calls = registry.histogram(
      'csi_operations_seconds',
      '[ALPHA] Container Storage Interface operation duration with gRPC error code status total',
      ['driver_name', 'method_name', 'grpc_status_code', 'migrated'],
      BUCKETS,
    );
  }

  called(driver: string, method: string, code: string, migrated: boolean, seconds: number): void {
    this.#calls.observe(seconds, {
      driver_name: driver,
      method_name: method,
      grpc_status_code: code,
      migrated: String(migrated),
    });
  }
}
