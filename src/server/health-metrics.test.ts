import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HealthMetrics } from './health-metrics.ts';

test('results of both ports are counted, those of the health port when somebody looks', () => {
  const local = { pings: 0 };
  const health = new HealthMetrics(local, 1_500);
  const series = (): string[] =>
    String(health.render())
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
  assert.deepEqual(series(), ['process_start_time_seconds 1.5']);
  local.pings = 3;
  assert.deepEqual(series(), [
    'kubernetes_healthcheck{name="ping",type="healthz"} 1',
    'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 3',
    'process_start_time_seconds 1.5',
  ]);
  health.observe('ping', true);
  health.observe('syncloop', false);
  local.pings = 4;
  assert.deepEqual(series(), [
    'kubernetes_healthcheck{name="ping",type="healthz"} 1',
    'kubernetes_healthcheck{name="syncloop",type="healthz"} 0',
    'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 5',
    'kubernetes_healthchecks_total{name="syncloop",status="error",type="healthz"} 1',
    'process_start_time_seconds 1.5',
  ]);
});
