import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod, PodCondition } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { StatusStore } from '../status/status-store.ts';
import { PodStatusWriter } from './pod-status-writer.ts';
import { StartErrors } from './start-errors.ts';

const NETWORK = 'PodReadyToStartContainers';
const pod: Pod = { metadata: { name: 'p', namespace: 'ns', uid: 'u' }, spec: { containers: [{ name: 'c' }] } };
const condition = (type: string, status: 'True' | 'False'): PodCondition => ({ type, status, lastProbeTime: null });

test('a sandbox that is up is told with the time at which it came up', async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const store = new StatusStore({ clock, log: silentLogger, onChange: () => undefined });
  const writer = new PodStatusWriter({
    store,
    derive: () => ({
      phase: 'Pending',
      conditions: [condition(NETWORK, 'False'), condition('Initialized', 'True')],
    }),
    messages: { load: async () => undefined, of: () => '' },
    startErrors: new StartErrors(),
    events: { pod: () => undefined, node: () => undefined },
    clock,
  });
  const times = (): (string | null | undefined)[] =>
    (store.lastOf(pod).conditions ?? []).map((c) => `${c.status} ${c.lastTransitionTime?.slice(14, 19)}`);
  await writer.write(pod, undefined);
  assert.deepEqual(times(), ['False 00:00', 'True 00:00']);
  await clock.advance(5000);
  writer.sandboxReady(pod);
  assert.deepEqual(times(), ['True 00:05', 'True 00:00']);
  await clock.advance(5000);
  writer.sandboxReady(pod);
  assert.deepEqual(times(), ['True 00:05', 'True 00:00'], 'nothing new');
});
