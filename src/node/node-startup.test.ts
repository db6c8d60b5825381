import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../core/node.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { NodeStartup } from './node-startup.ts';

const node = (ready: string): Node =>
  ({ metadata: { name: 'n' }, status: { conditions: [{ type: 'Ready', status: ready }] } }) as unknown as Node;

function setup() {
  const clock = new ManualClock(100_000);
  const registry = new Registry();
  const startup = new NodeStartup(clock, registry, { bootMs: 40_000, startedMs: 90_000 });
  const values = (): number[] =>
    ['pre_kubelet_', 'pre_registration_', 'registration_', 'post_registration_', ''].map((name) =>
      Number(new RegExp(`^kubelet_node_startup_${name}duration_seconds (\\S+)$`, 'm').exec(registry.render())?.[1]),
    );
  return { clock, startup, values };
}

test('a new node, from power on to Ready', async () => {
  const { clock, startup, values } = setup();
  await assert.rejects(startup.creating(() => Promise.reject(new Error('no server'))));
  await clock.advance(2000);
  await startup.creating(() => Promise.resolve());
  startup.answered(node('False'));
  await clock.advance(3000);
  startup.answered(node('True'));
  await clock.advance(5000);
  startup.answered(node('True'));
  assert.deepEqual(values(), [50, 10, 2, 3, 65]);
});

test('a node that was there before has no start', async () => {
  const { startup, values } = setup();
  await assert.rejects(startup.creating(() => Promise.reject(new Error('exists'))));
  startup.answered(node('True'));
  assert.deepEqual(values(), [0, 0, 0, 0, 0]);
});
