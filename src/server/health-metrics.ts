// kubernetes_healthcheck(s_total): the results of the health checks of both ports, for /metrics/slis.
import { Registry } from '../lib/metrics.ts';
import type { HealthObserver } from './health-checks.ts';

/** The health port, which answers before this part is loaded. */
export type LocalHealth = { readonly pings: number };

const TYPE = 'healthz';
const START_TIME = 'process_start_time_seconds';

export class HealthMetrics {
  readonly observe: HealthObserver;
  readonly #registry = new Registry();
  readonly #local: LocalHealth;
  /** Of the health port's pings. */
  #counted = 0;

  constructor(local: LocalHealth, startMs: number) {
    this.#local = local;
    const last = this.#registry.gauge(
      'kubernetes_healthcheck',
      '[STABLE] This metric records the result of a single healthcheck.',
      ['name', 'type'],
    );
    const total = this.#registry.counter(
      'kubernetes_healthchecks_total',
      '[STABLE] This metric records the results of all healthcheck.',
      ['name', 'status', 'type'],
    );
    this.#registry.collected(
      START_TIME,
      '[ALPHA] Start time of the process since unix epoch in seconds.',
      'gauge',
      () => [[{}, startMs / 1000]],
    );
    this.observe = (name, ok, times = 1) => {
      last.set(ok ? 1 : 0, { name, type: TYPE });
      total.inc({ name, status: ok ? 'success' : 'error', type: TYPE }, times);
    };
  }

  render(): ReturnType<Registry['render']> {
    const pings = this.#local.pings - this.#counted;
    this.#counted += pings;
    if (pings > 0) this.observe('ping', true, pings);
    return this.#registry.render();
  }
}
