// The metric families of dynamic resource allocation, as upstream has them.
import type { Histogram, Registry } from '../lib/metrics.ts';

/** 0.1 to 40 seconds in fourteen equal factors, to the last digit as upstream's rounding has them: they are names of series. */
const BUCKETS = [
  0.1, 0.1534127404634391, 0.23535468936502524, 0.36106407876409946, 0.5539182980610752, 0.849781240983936,
  1.303672689737678, 1.9999999999999993, 3.0682548092687805, 4.7070937873005025, 7.221281575281985, 11.078365961221499,
  16.995624819678714, 26.07345379475354, 39.99999999999997,
];

export type DraMetrics = { readonly operations: Histogram; readonly calls: Histogram };

/** `inUse`: prepared claims by driver. */
export function draMetrics(registry: Registry, inUse: () => ReadonlyMap<string, number>): DraMetrics {
  registry.collected(
    'dra_resource_claims_in_use',
    '[ALPHA] The number of ResourceClaims that are currently in use on the node, by driver name (driver_name label value) and across all drivers (special value <any> for driver_name). Note that the sum of all by-driver counts is not the total number of in-use ResourceClaims because the same ResourceClaim might use devices from different drivers. Instead, use the count for the <any> driver_name.',
    'gauge',
    () => [...inUse()].map(([driver, count]) => [{ driver_name: driver }, count] as const),
  );
  return {
    operations: registry.histogram(
      'dra_operations_duration_seconds',
      "[ALPHA] Latency histogram in seconds for the duration of handling all ResourceClaims referenced by a pod when the pod starts or stops. Identified by the name of the operation (PrepareResources or UnprepareResources) and separated by the success of the operation. The number of failed operations is provided through the histogram's overall count.",
      ['operation_name', 'is_error'],
      BUCKETS,
    ),
    calls: registry.histogram(
      'dra_grpc_operations_duration_seconds',
      '[ALPHA] Duration in seconds of the DRA gRPC operations',
      ['driver_name', 'method_name', 'grpc_status_code'],
      BUCKETS,
    ),
  };
}
