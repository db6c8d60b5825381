// Counts and times every CRI call under upstream's operation names.
import type { Clock } from '../lib/clock.ts';
import { exponentialBuckets, type Registry } from '../lib/metrics.ts';
import type { CallInterceptor } from './services.ts';

/** Upstream's name of a verb: snake case, except for a few that it spells in its own way. */
const SPECIAL: Readonly<Record<string, string>> = {
  runPodSandbox: 'run_podsandbox',
  stopPodSandbox: 'stop_podsandbox',
  removePodSandbox: 'remove_podsandbox',
  podSandboxStatus: 'podsandbox_status',
  listPodSandbox: 'list_podsandbox',
  podSandboxStats: 'podsandbox_stats',
  listPodSandboxStats: 'list_podsandbox_stats',
  listPodSandboxMetrics: 'list_podsandbox_metrics',
  updatePodSandboxResources: 'update_podsandbox_resources',
  updateContainerResources: 'update_container',
};

export const operationType = (verb: string): string =>
  SPECIAL[verb] ?? verb.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

/** The runtime does not tell its cgroup driver: from this release on it will have to. */
export function losingSupport(registry: Registry): void {
  const gauge = registry.gauge(
    'kubelet_cri_losing_support',
    '[ALPHA] the Kubernetes version that the currently running CRI implementation will lose support on if not upgraded.',
    ['version'],
  );
  gauge.set(1, { version: '1.37.0' });
}

export function criMetrics(clock: Clock, registry: Registry): CallInterceptor {
  const labels = ['operation_type'];
  const total = registry.counter(
    'kubelet_runtime_operations_total',
    '[ALPHA] Cumulative number of runtime operations by operation type.',
    labels,
  );
  const errors = registry.counter(
    'kubelet_runtime_operations_errors_total',
    '[ALPHA] Cumulative number of runtime operation errors by operation type.',
    labels,
  );
  const duration = registry.histogram(
    'kubelet_runtime_operations_duration_seconds',
    '[ALPHA] Duration in seconds of runtime operations. Broken down by operation type.',
    labels,
    exponentialBuckets(0.005, 2.5, 14),
  );
  return async (verb, call) => {
    const operation = { operation_type: operationType(verb) };
    const begun = clock.monotonic();
    total.inc(operation);
    try {
      return await call();
    } catch (err) {
      errors.inc(operation);
      throw err;
    } finally {
      duration.observe((clock.monotonic() - begun) / 1000, operation);
    }
  };
}
