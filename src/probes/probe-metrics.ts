// prober_probe_total and prober_probe_duration_seconds; a worker's series go with it.
import { namespaceOf, type Pod } from '../core/pod.ts';
import type { Counter, Histogram, Labels, Registry } from '../lib/metrics.ts';
import type { ProbeType } from './probe-state.ts';

export const TITLE: Record<ProbeType, string> = { startup: 'Startup', readiness: 'Readiness', liveness: 'Liveness' };

export class ProbeMetrics {
  readonly #total: Counter;
  readonly #duration: Histogram;

  constructor(registry: Registry) {
    this.#total = registry.counter(
      'prober_probe_total',
      '[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result.',
      ['probe_type', 'result', 'container', 'pod', 'namespace', 'pod_uid'],
    );
    this.#duration = registry.histogram(
      'prober_probe_duration_seconds',
      '[ALPHA] Duration in seconds for a probe response.',
      ['probe_type', 'container', 'pod', 'namespace'],
    );
  }

  count(pod: Pod, container: string, type: ProbeType, result: 'successful' | 'failed', tookMs: number): void {
    const labels = labelsOf(pod, container, type);
    this.#total.inc({ ...labels, result });
    // How long a failure took says more about its timeout than about the container.
    if (result === 'successful') this.#duration.observe(tookMs / 1000, labels);
  }

  remove(pod: Pod, container: string, type: ProbeType): void {
    const labels = labelsOf(pod, container, type);
    for (const result of ['successful', 'failed', 'unknown']) this.#total.remove({ ...labels, result });
    this.#duration.remove(labels);
  }
}

const labelsOf = (pod: Pod, container: string, type: ProbeType): Labels => ({
  probe_type: TITLE[type],
  container,
  pod: pod.metadata.name,
  namespace: namespaceOf(pod),
  pod_uid: pod.metadata.uid ?? '',
});
