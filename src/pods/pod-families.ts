// The metric families about pods: names, help texts and buckets as dashboards know them.
import { exponentialBuckets, type Counter, type Gauge, type Histogram, type Registry } from '../lib/metrics.ts';

export type PodFamilies = StartFamilies &
  SweepFamilies & {
    readonly workerDuration: Histogram;
    readonly workerStart: Histogram;
    readonly containersPerPod: Histogram;
    readonly terminated: Counter;
    readonly statusSync: Histogram;
    readonly orphans: Counter;
    readonly restarts: Counter;
  };

type SweepFamilies = { readonly sweptPods: Gauge; readonly sweepFailures: Gauge };

type StartFamilies = {
  readonly startDuration: Histogram;
  readonly startSli: Histogram;
  readonly startTotal: Histogram;
  readonly firstNetwork: Gauge;
};

const START_BUCKETS = [
  0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
];

export function podFamilies(registry: Registry): PodFamilies {
  const workerDuration = registry.histogram(
    'kubelet_pod_worker_duration_seconds',
    '[ALPHA] Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync',
    ['operation_type'],
  );
  const workerStart = registry.histogram(
    'kubelet_pod_worker_start_duration_seconds',
    '[ALPHA] Duration in seconds from kubelet seeing a pod to starting a worker.',
  );
  const containersPerPod = registry.histogram(
    'kubelet_containers_per_pod_count',
    '[ALPHA] The number of containers per pod.',
    [],
    exponentialBuckets(1, 2, 5),
  );
  const terminated = registry.counter(
    'kubelet_terminated_containers_total',
    '[ALPHA] Cumulative number of container terminations.',
    ['container_type', 'exit_code', 'reason'],
  );
  const statusSync = registry.histogram(
    'kubelet_pod_status_sync_duration_seconds',
    '[ALPHA] Duration in seconds to sync a pod status update. Measures time from detection of a change to pod status until the API is successfully updated for that pod, even if multiple intevening changes to pod status occur.',
    [],
    [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60],
  );
  const orphans = registry.counter(
    'kubelet_orphaned_runtime_pods_total',
    '[ALPHA] Number of pods that have been detected in the container runtime without being already known to the pod worker. This typically indicates the kubelet was restarted while a pod was force deleted in the API or in the local configuration, which is unusual.',
  );
  const restarts = registry.counter(
    'kubelet_restarted_pods_total',
    '[ALPHA] Number of pods that have been restarted because they were deleted and recreated with the same UID while the kubelet was watching them (common for static pods, extremely uncommon for API pods)',
    ['static'],
  );
  for (const origin of ['', 'true']) restarts.inc({ static: origin }, 0);
  return {
    ...startFamilies(registry),
    ...sweepFamilies(registry),
    workerDuration,
    workerStart,
    containersPerPod,
    terminated,
    statusSync,
    orphans,
    restarts,
  };
}

const sweepFamilies = (registry: Registry): SweepFamilies => ({
  sweptPods: registry.gauge(
    'kubelet_orphan_pod_cleaned_volumes',
    '[ALPHA] The total number of orphaned Pods whose volumes were cleaned in the last periodic sweep.',
  ),
  sweepFailures: registry.gauge(
    'kubelet_orphan_pod_cleaned_volumes_errors',
    '[ALPHA] The number of orphaned Pods whose volumes failed to be cleaned in the last periodic sweep.',
  ),
});

function startFamilies(registry: Registry): StartFamilies {
  const startDuration = registry.histogram(
    'kubelet_pod_start_duration_seconds',
    '[ALPHA] Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run',
    [],
    START_BUCKETS,
  );
  const measured =
    'measured from pod creation timestamp to when all its containers are reported as started and observed via watch';
  const startSli = registry.histogram(
    'kubelet_pod_start_sli_duration_seconds',
    `[ALPHA] Duration in seconds to start a pod, excluding time to pull images and run init containers, ${measured}`,
    [],
    START_BUCKETS,
  );
  const startTotal = registry.histogram(
    'kubelet_pod_start_total_duration_seconds',
    `[ALPHA] Duration in seconds to start a pod since creation, including time to pull images and run init containers, ${measured}`,
    [],
    START_BUCKETS,
  );
  const firstNetwork = registry.gauge(
    'kubelet_first_network_pod_start_sli_duration_seconds',
    `[INTERNAL] Duration in seconds to start the first network pod, excluding time to pull images and run init containers, ${measured}`,
  );
  return { startDuration, startSli, startTotal, firstNetwork };
}
