import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod, PodStatus } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { PodChanges } from './pod-changes.ts';
import { PodStore } from './pod-store.ts';
import type { PodWorkers } from './pod-workers.ts';

const gates = [{ conditionType: 'example.com/open' }];
const condition = (type: string, status: string) => ({ type, status }) as NonNullable<PodStatus['conditions']>[number];
const podWith = (status: PodStatus, more: Partial<Pod['spec']> = {}, annotations = {}): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid: 'u', annotations },
  spec: { containers: [{ name: 'c' }], ...more },
  status,
});

function setup() {
  const woken: string[] = [];
  const workers = {
    stateOf: () => ({ phase: 'syncing' }),
    ensure: (pod: Pod) => void woken.push(`ensure ${pod.metadata.uid}`),
    wake: (uid: string) => void woken.push(`wake ${uid}`),
  } as unknown as PodWorkers;
  const changes = new PodChanges({
    store: new PodStore(),
    workers,
    status: { statusOf: () => undefined, set: (_pod, status) => status },
    admission: { admit: async () => ({ ok: true }) },
    resizes: { admitted: () => undefined, offer: () => undefined },
    onRemoved: () => undefined,
    events: { pod: () => undefined, node: () => undefined },
    log: silentLogger,
  });
  return { changes, woken };
}

describe('a status that came back from the API server', () => {
  const running: PodStatus = { phase: 'Running' };
  for (const [name, before, after, wakes] of [
    ['our own patch', podWith({ phase: 'Pending' }), podWith(running), false],
    [
      'a condition of somebody else',
      podWith(running),
      podWith({ ...running, conditions: [condition('x', 'True')] }),
      false,
    ],
    ['a phase that somebody else made final', podWith(running), podWith({ phase: 'Failed' }), true],
    [
      'an opened gate',
      podWith(running, { readinessGates: gates }),
      podWith({ ...running, conditions: [condition('example.com/open', 'True')] }, { readinessGates: gates }),
      true,
    ],
    [
      'our own patch of a pod with an open gate',
      podWith({ phase: 'Pending', conditions: [condition('example.com/open', 'True')] }, { readinessGates: gates }),
      podWith({ ...running, conditions: [condition('example.com/open', 'True')] }, { readinessGates: gates }),
      false,
    ],
  ] as const)
    it(`${name}: ${wakes ? 'the worker looks' : 'nobody is woken'}`, async () => {
      const t = setup();
      await t.changes.handle({ op: 'ADD', pods: [before] });
      t.woken.length = 0;
      await t.changes.handle({ op: 'RECONCILE', pods: [after] });
      assert.deepEqual(t.woken, wakes ? ['wake u'] : []);
    });
});
