import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from '../lib/metrics.ts';
import { runtimeMetrics } from './metrics.ts';

test('the durations of sandboxes are told in the steps dashboards know', () => {
  const registry = new Registry();
  runtimeMetrics(registry).sandboxRan('runc', 3);
  const steps = [...registry.render().matchAll(/kubelet_run_podsandbox_duration_seconds_bucket\{[^}]*le="([^"]+)"/g)];
  assert.deepEqual(
    steps.map(([, le]) => le),
    ['0.005', '0.01', '0.025', '0.05', '0.1', '0.25', '0.5', '1', '2.5', '5', '10', '+Inf'],
  );
});
