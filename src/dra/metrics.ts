// The metric families of dynamic resource allocation, as upstream has them.
import type { Histogram, Registry } from '../lib/metrics.ts';

const [LEAST_SECONDS, MOST_SECONDS, COUNT] = [0.1, 40, 15];
const GROWTH = (MOST_SECONDS / LEAST_SECONDS) ** (1 / (COUNT - 1));
const BUCKETS = Array.from({ length: COUNT }, (_, i) => LEAST_SECONDS * GROWTH ** i);

export type DraMetrics = { readonly operations: Histogram; readonly calls: Histogram };

/** `inUse`: prepared claims by driver. */
export function draMetrics(registry: Registry, inUse: () => ReadonlyMap<string, number>): DraMetrics {
  registry.collected(
    'dra_resource_claims_in_use',
    'The number of ResourceClaims that are currently in use on the node, by driver name (driver_name label value) and across all drivers (special value <any> for driver_name). Note that the sum of all by-driver counts is not the total number of in-use ResourceClaims because the same ResourceClaim might use devices from different drivers. Instead, use the count for the <any> driver_name.',
    'gauge',
    () => [...inUse()].map(([driver, count]) => [{ driver_name: driver }, count] as const),
  );
  return {
    operations: registry.histogram(
      'dra_operations_duration_seconds',
      "Latency histogram in seconds for the duration of handling all ResourceClaims referenced by a pod when the pod starts or stops. Identified by the name of the operation (PrepareResources or UnprepareResources) and separated by the success of the operation. The number of failed operations is provided through the histogram's overall count.",
      ['operation_name', 'is_error'],
      BUCKETS,
    ),
    calls: registry.histogram(
      'dra_grpc_operations_duration_seconds',
      'Duration in seconds of the DRA gRPC operations',
      ['driver_name', 'method_name', 'grpc_status_code'],
      BUCKETS,
    ),
  };
}
