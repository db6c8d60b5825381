// kubernetes_healthcheck(s_total): the results of the health checks, for /metrics/slis.
import { Registry } from '../lib/metrics.ts';
import type { HealthObserver } from './health-checks.ts';

export class HealthMetrics {
  readonly registry = new Registry();
  readonly observe: HealthObserver;

  constructor() {
    const last = this.registry.gauge(
      'kubernetes_healthcheck',
      'This metric records the result of a single healthcheck.',
      ['name', 'type'],
    );
    const total = this.registry.counter(
      'kubernetes_healthchecks_total',
      'This metric records the results of all healthcheck.',
      ['name', 'status', 'type'],
    );
    this.observe = (name, ok) => {
      last.set(ok ? 1 : 0, { name, type: 'healthz' });
      total.inc({ name, status: ok ? 'success' : 'error', type: 'healthz' });
    };
  }
}
