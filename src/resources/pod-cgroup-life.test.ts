import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { PodCgroupLife } from './pod-cgroup-life.ts';

const pod: Pod = { metadata: { name: 'p', uid: 'u' }, spec: { containers: [] } };
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
