import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from '../lib/metrics.ts';
import { registerRegistryMetrics } from './registry-metrics.ts';

test('families are counted by how stable they are, whether or not they have a sample', () => {
  const [registry, probes] = [new Registry(), new Registry()];
  registry.counter('a_total', '[ALPHA] Without a sample.', ['label']);
  registry.gauge('b', '[STABLE] With one.');
  registry.gauge('process_c', 'Of the process.');
  probes.counter('d_total', '[BETA] On another page.');
  registerRegistryMetrics(registry, [registry, probes]);
  const shown = registry.render();
  const counts = [
    ...shown.matchAll(/^registered_metrics_total\{deprecated_version="",stability_level="(\w+)"\} (\d+)$/gm),
  ];
  // With the four families that say so.
  assert.deepEqual(Object.fromEntries(counts.map(([, level, count]) => [level, Number(count)])), {
    ALPHA: 2,
    BETA: 4,
    STABLE: 1,
  });
  for (const name of ['disabled_metrics_total', 'hidden_metrics_total'])
    assert.match(shown, new RegExp(`^${name} 0$`, 'm'));
});
