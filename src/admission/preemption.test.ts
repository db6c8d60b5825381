import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Pod } from '../core/pod.ts';
import { requestOf, type Shortage } from './node-fit.ts';
import { planPreemption } from './preemption.ts';

const CRITICAL: Pod = { metadata: { name: 'boss' }, spec: { containers: [], priority: 2_000_000_000 } };
const guaranteed = (name: string, cpu: string, memory: string): Pod => {
  const list = { cpu, memory };
  return { metadata: { name }, spec: { containers: [{ name: 'c', resources: { requests: list, limits: list } }] } };
};
const burstable = (name: string, requests: Record<string, string>, priority = 0): Pod => ({
  metadata: { name },
  spec: { containers: [{ name: 'c', resources: { requests } }], priority },
});
const bestEffort = (name: string): Pod => ({ metadata: { name }, spec: { containers: [{ name: 'c' }] } });
const short = (resource: string, needed: number): Shortage => ({ resource, requested: needed, used: 0, capacity: 0 });
const names = (running: readonly Pod[], ...shortages: Shortage[]): readonly string[] | string => {
  const plan = planPreemption(CRITICAL, running, shortages);
  return plan.ok ? plan.victims.map((p) => p.metadata.name) : plan.why;
};

test('as few and as unimportant as possible', () => {
  const g = guaranteed('g', '1', '1Gi');
  const [b1, b2] = [burstable('b1', { cpu: '500m' }), burstable('b2', { cpu: '1' })];
  const e = bestEffort('e');
  assert.deepEqual(names([g, b1, b2, e], short('cpu', 500)), ['b1']);
  assert.deepEqual(names([g, b1, b2, e], short('cpu', 600)), ['b2']);
  assert.deepEqual(names([g, b1, b2, e], short('cpu', 1500)), ['b2', 'b1']);
  assert.deepEqual(names([g, b1, b2, e], short('cpu', 2000)), ['b2', 'g']);
  assert.deepEqual(names([g, b1, b2, e], short('pods', 1)), ['e']);
  assert.deepEqual(names([g, b1], short('pods', 1)), ['b1']);
});

test('among equals the one with the smaller memory, then cpu request goes', () => {
  const a = burstable('a', { cpu: '2', memory: '2Gi' });
  const b = burstable('b', { cpu: '2', memory: '1Gi' });
  const c = burstable('c', { cpu: '1', memory: '1Gi' });
  assert.deepEqual(names([a, b], short('cpu', 500)), ['b']);
  assert.deepEqual(names([a, b, c], short('cpu', 500)), ['c']);
});

test('critical pods yield only to a higher priority', () => {
  const other = burstable('other', { cpu: '1' }, 2_000_000_000);
  assert.equal(
    names([other], short('cpu', 100)),
    'no set of running pods found to reclaim resources: [(res: cpu, q: 100), ]',
  );
  const higher: Pod = { ...CRITICAL, spec: { containers: [], priority: 2_000_001_000 } };
  const plan = planPreemption(higher, [other], [short('cpu', 100)]);
  assert.deepEqual(plan, { ok: true, victims: [other] });
});

test('a static pod without a priority yields to nobody', () => {
  const plain = burstable('plain', { cpu: '1' });
  const { priority: _, ...spec } = plain.spec;
  const metadata = { ...plain.metadata, annotations: { 'kubernetes.io/config.source': 'file' } };
  assert.equal(planPreemption(CRITICAL, [{ metadata, spec }], [short('cpu', 100)]).ok, false);
});

test('the victims of any plan free what is needed', () => {
  const pods = fc.array(
    fc.record({ cpu: fc.integer({ min: 0, max: 5 }), memory: fc.integer({ min: 0, max: 5 }), full: fc.boolean() }),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(pods, fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 10 }), (list, cpu, memory) => {
      const running = list.map((p, i) =>
        p.full
          ? guaranteed(`p${i}`, `${p.cpu + 1}`, `${p.memory + 1}`)
          : burstable(`p${i}`, { cpu: `${p.cpu}`, memory: `${p.memory}` }),
      );
      const shortages = [short('cpu', cpu * 1000), short('memory', memory)];
      const plan = planPreemption(CRITICAL, running, shortages);
      const total = (from: readonly Pod[], name: string): number =>
        from.reduce((sum, p) => sum + requestOf(p, name), 0);
      const possible = shortages.every((s) => total(running, s.resource) >= s.requested);
      assert.equal(plan.ok, possible);
      if (plan.ok) for (const s of shortages) assert.ok(total(plan.victims, s.resource) >= s.requested);
    }),
  );
});

test('a pod of higher priority may preempt without being critical, an equal one may not', () => {
  const podOf = (name: string, priority?: number): Pod => ({
    metadata: { name, uid: name },
    spec: {
      containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }],
      ...(priority === undefined ? {} : { priority }),
    },
  });
  const short: Shortage[] = [{ resource: 'cpu', requested: 1000, used: 1000, capacity: 1000 } as never];
  const victims = (pod: Pod): readonly string[] | string => {
    const plan = planPreemption(pod, [podOf('plain', 0)], short);
    return plan.ok ? plan.victims.map((p) => p.metadata.name) : 'none';
  };
  assert.deepEqual(victims(podOf('high', 1)), ['plain']);
  assert.equal(victims(podOf('same', 0)), 'none');
  assert.equal(victims(podOf('unset')), 'none');
});
