import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { PodCgroupLife } from './pod-cgroup-life.ts';

const asking = (cpu: string): Pod => ({
  metadata: { name: 'p', uid: 'u' },
  spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }] },
});
const pod = asking('1');
const never = new AbortController().signal;

for (const [what, made, want] of [
  ['made', true, ['ensure', 'refresh', 'made']],
  ['there already', false, ['ensure', 'refresh']],
] as const)
  test(`a cgroup that is ${what}`, async () => {
    const did: string[] = [];
    const life = new PodCgroupLife({
      cgroups: {
        exists: async () => false,
        ensure: async () => {
          did.push('ensure');
          return made;
        },
        destroy: async (pod) => void did.push(`destroy ${typeof pod === 'string' ? pod : pod.metadata.uid}`),
      },
      tiers: () => ({ refresh: async () => void did.push('refresh') }),
      onMade: () => void did.push('made'),
    });
    await life.ensure(pod, never);
    assert.deepEqual(did, want);
    await life.destroy(podUid('u'), never);
    assert.deepEqual(did.slice(want.length), ['destroy u', 'refresh']);
  });

test('a resync of the same pod does not weigh its tier again, a changed pod does', async () => {
  let refreshes = 0;
  const life = new PodCgroupLife({
    cgroups: { exists: async () => true, ensure: async () => false, destroy: async () => undefined },
    tiers: () => ({ refresh: async () => void refreshes++ }),
    onMade: () => undefined,
  });
  await life.ensure(pod, never);
  await life.ensure(pod, never);
  assert.equal(refreshes, 1);
  await life.ensure({ ...pod, status: { phase: 'Running' } }, never);
  assert.equal(refreshes, 1, 'a new status asks for nothing else');
  await life.ensure(asking('2'), never);
  assert.equal(refreshes, 2);
  const modest: Pod = { metadata: { name: 'm', uid: 'm' }, spec: { containers: [{ name: 'c' }] } };
  await life.ensure(modest, never);
  await life.destroy(modest, never);
  assert.equal(refreshes, 2, 'a pod that asks for nothing weighs nothing');
  await life.destroy(pod, never);
  assert.equal(refreshes, 3);
});

test('a tier that was not weighed because the cgroup could not be made is weighed with the next try', async () => {
  let refreshes = 0;
  let fails = true;
  const life = new PodCgroupLife({
    cgroups: {
      exists: async () => false,
      ensure: async () => (fails ? Promise.reject(new Error('read-only')) : true),
      destroy: async () => undefined,
    },
    tiers: () => ({ refresh: async () => void refreshes++ }),
    onMade: () => undefined,
  });
  await assert.rejects(life.ensure(pod, never));
  fails = false;
  await life.ensure(pod, never);
  assert.equal(refreshes, 2);
});

test('a cgroup that was just seen is not looked for again, its tier is weighed all the same', async () => {
  const did: string[] = [];
  const life = new PodCgroupLife({
    cgroups: {
      exists: async () => true,
      ensure: async () => did.push('ensure') > 0,
      destroy: async () => undefined,
    },
    tiers: () => ({ refresh: async () => void did.push('refresh') }),
    onMade: () => void did.push('made'),
  });
  await life.ensure(pod, never, true);
  assert.deepEqual(did, ['refresh']);
});
