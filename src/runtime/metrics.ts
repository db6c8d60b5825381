// Counters of what was started and what failed, under the names dashboards know.
import type { Registry } from '../lib/metrics.ts';
import type { RuntimeMetrics } from './needs.ts';

export function runtimeMetrics(registry: Registry): RuntimeMetrics {
  const pods = registry.counter('kubelet_started_pods_total', '[ALPHA] Cumulative number of pods started');
  const podErrors = registry.counter(
    'kubelet_started_pods_errors_total',
    '[ALPHA] Cumulative number of errors when starting pods',
  );
  const usernsPods = registry.counter(
    'kubelet_started_user_namespaced_pods_total',
    '[ALPHA] Cumulative number of pods with user namespaces started. This metric will only be collected on Linux.',
  );
  const usernsPodErrors = registry.counter(
    'kubelet_started_user_namespaced_pods_errors_total',
    '[ALPHA] Cumulative number of errors when starting pods with user namespaces. This metric will only be collected on Linux.',
  );
  const containers = registry.counter(
    'kubelet_started_containers_total',
    '[ALPHA] Cumulative number of containers started',
    ['container_type'],
  );
  const containerErrors = registry.counter(
    'kubelet_started_containers_errors_total',
    '[ALPHA] Cumulative number of errors when starting containers',
    ['container_type', 'code'],
  );
  const sandboxSeconds = registry.histogram(
    'kubelet_run_podsandbox_duration_seconds',
    '[ALPHA] Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.',
    ['runtime_handler'],
  );
  const sandboxErrors = registry.counter(
    'kubelet_run_podsandbox_errors_total',
    '[ALPHA] Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.',
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
    ...imageVolumeMetrics(registry),
    ...hookMetrics(registry),
    ...resizeMetrics(registry),
  };
}

type Part<K extends keyof RuntimeMetrics> = Pick<RuntimeMetrics, K>;

function imageVolumeMetrics(registry: Registry): Part<'imageVolumes'> {
  const imageVolumes = registry.counter(
    'kubelet_image_volume_requested_total',
    '[BETA] Number of requested image volumes.',
  );
  const imageVolumesMounted = registry.counter(
    'kubelet_image_volume_mounted_succeed_total',
    '[BETA] Number of successful image volume mounts.',
  );
  const imageVolumesFailed = registry.counter(
    'kubelet_image_volume_mounted_errors_total',
    '[BETA] Number of failed image volume mounts.',
  );
  return {
    imageVolumes: (requested, mounted, failed) => {
      imageVolumes.inc({}, requested);
      (failed ? imageVolumesFailed : imageVolumesMounted).inc({}, mounted);
    },
  };
}

function hookMetrics(registry: Registry): Part<'hookFellBackToHttp' | 'hookSleepCutShort'> {
  const fallbacks = registry.counter(
    'kubelet_lifecycle_handler_http_fallbacks_total',
    '[ALPHA] The number of times lifecycle handlers successfully fell back to http from https.',
  );
  const shortSleeps = registry.counter(
    'kubelet_sleep_action_terminated_early_total',
    '[ALPHA] The number of times lifecycle sleep handler got terminated before it finishes',
  );
  return { hookFellBackToHttp: () => fallbacks.inc(), hookSleepCutShort: () => shortSleeps.inc() };
}

const RESIZE_BUCKETS = [10, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000];
function resizeMetrics(registry: Registry): Part<'resized'> {
  const durations = registry.histogram(
    'kubelet_pod_resize_duration_milliseconds',
    '[ALPHA] Duration in milliseconds to actuate a pod resize',
    ['success'],
    RESIZE_BUCKETS,
  );
  return { resized: (succeeded, milliseconds) => durations.observe(milliseconds, { success: String(succeeded) }) };
}
