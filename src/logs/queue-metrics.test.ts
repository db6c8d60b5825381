import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { QueueMetrics } from './queue-metrics.ts';

/** The samples of the families, without buckets, by their names without `workqueue_`. */
const figures = (registry: Registry): Record<string, number> =>
  Object.fromEntries(
    [...registry.render().matchAll(/^workqueue_(\w+)\{name="kubelet_log_rotate_manager"\} (\S+)$/gm)].map(
      ([, name = '', value]) => [name, Number(value)],
    ),
  );

test('items that wait, items that are worked on, and those who never got their turn', async () => {
  const clock = new ManualClock();
  const registry = new Registry();
  const queue = new QueueMetrics(clock, registry);
  const none = {
    adds_total: 0,
    depth: 0,
    longest_running_processor_seconds: 0,
    queue_duration_seconds_sum: 0,
    queue_duration_seconds_count: 0,
    retries_total: 0,
    unfinished_work_seconds: 0,
    work_duration_seconds_sum: 0,
    work_duration_seconds_count: 0,
  };
  assert.deepEqual(figures(registry), none, 'shown before the first item');
  const worker = new Semaphore(1);
  const stop = new AbortController();
  const ends: (() => void)[] = [];
  const items = [1, 2, 3].map(() =>
    queue.item(
      (work) => worker.run(stop.signal, work),
      () => new Promise<void>((resolve) => ends.push(resolve)),
    ),
  );
  await clock.advance(500);
  const one = { ...none, adds_total: 3, depth: 2, queue_duration_seconds_count: 1 };
  assert.deepEqual(figures(registry), {
    ...one,
    longest_running_processor_seconds: 0.5,
    unfinished_work_seconds: 0.5,
  });
  ends[0]?.();
  await items[0];
  await clock.advance(0);
  const two = { ...one, depth: 1, queue_duration_seconds_count: 2, queue_duration_seconds_sum: 0.5 };
  const done = { work_duration_seconds_count: 1, work_duration_seconds_sum: 0.5 };
  assert.deepEqual(figures(registry), { ...two, ...done });
  stop.abort();
  ends[1]?.();
  await Promise.allSettled(items);
  assert.deepEqual(figures(registry), { ...two, ...done, depth: 0, work_duration_seconds_count: 2 });
});

test('the bounds of buckets are those of upstream, to the last digit', () => {
  const registry = new Registry();
  new QueueMetrics(new ManualClock(), registry);
  const bounds = [...registry.render().matchAll(/^workqueue_work_duration_seconds_bucket\{le="([^"]+)"/gm)].map(
    ([, le]) => le,
  );
  const small = ['1e-08', '1e-07', '1e-06', '9.999999999999999e-06', '9.999999999999999e-05'];
  assert.deepEqual(bounds, [...small, '0.001', '0.01', '0.1', '1', '10', '+Inf']);
});
