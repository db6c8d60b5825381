import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from '../lib/metrics.ts';
import { imageMetrics } from './image-metrics.ts';

test('the durations of pulls are told in the steps dashboards know', () => {
  const registry = new Registry();
  imageMetrics(registry, { intents: 0, records: 0 }).pullDuration.observe(100, { image_size_in_bytes: '0-10MB' });
  const steps = [...registry.render().matchAll(/kubelet_image_pull_duration_seconds_bucket\{[^}]*le="([^"]+)"/g)];
  assert.deepEqual(
    steps.map(([, le]) => le).join(' '),
    '1 5 10 20 30 60 120 180 240 300 360 480 600 900 1200 1800 2700 3600 +Inf',
  );
});
