// Counters of what was started and what failed, under the names dashboards know.
import { exponentialBuckets, type Registry } from '../lib/metrics.ts';
import type { RuntimeMetrics } from './needs.ts';

export function runtimeMetrics(registry: Registry): RuntimeMetrics {
  const pods = registry.counter('kubelet_started_pods_total', 'Cumulative number of pods started');
  const podErrors = registry.counter(
    'kubelet_started_pods_errors_total',
    'Cumulative number of errors when starting pods',
  );
  const usernsPods = registry.counter(
    'kubelet_started_user_namespaced_pods_total',
    'Cumulative number of pods with user namespaces started',
  );
  const usernsPodErrors = registry.counter(
    'kubelet_started_user_namespaced_pods_errors_total',
    'Cumulative number of errors when starting pods with user namespaces',
  );
  const containers = registry.counter('kubelet_started_containers_total', 'Cumulative number of containers started', [
    'container_type',
  ]);
  const containerErrors = registry.counter(
    'kubelet_started_containers_errors_total',
    'Cumulative number of errors when starting containers',
    ['container_type', 'code'],
  );
  const sandboxSeconds = registry.histogram(
    'kubelet_run_podsandbox_duration_seconds',
    'Duration in seconds of the run_podsandbox operations, by RuntimeClass.Handler',
    ['runtime_handler'],
    exponentialBuckets(0.005, 2.5, 14),
  );
  const sandboxErrors = registry.counter(
    'kubelet_run_podsandbox_errors_total',
    'Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler',
    ['runtime_handler'],
  );
  return {
    podStarting: (ownUsers) => {
      pods.inc();
      if (ownUsers) usernsPods.inc();
    },
    podFailed: (ownUsers) => {
      podErrors.inc();
      if (ownUsers) usernsPodErrors.inc();
    },
    sandboxRan: (handler, seconds) => sandboxSeconds.observe(seconds, { runtime_handler: handler }),
    sandboxFailed: (handler) => sandboxErrors.inc({ runtime_handler: handler }),
    containerStarting: (type) => containers.inc({ container_type: type }),
    containerFailed: (type, reason) => containerErrors.inc({ container_type: type, code: reason }),
  };
}
