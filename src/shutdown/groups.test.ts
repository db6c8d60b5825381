import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { graceSeconds, shutdownGroups, shutdownSteps, totalSeconds, type ShutdownConfig } from './groups.ts';

const config = (more: Partial<ShutdownConfig>): ShutdownConfig => ({
  shutdownGracePeriodMs: 0,
  shutdownGracePeriodCriticalPodsMs: 0,
  shutdownGracePeriodByPodPriority: [],
  ...more,
});
const pod = (name: string, priority?: number, grace?: number): Pod => ({
  metadata: { name },
  spec: {
    containers: [],
    ...(priority === undefined ? {} : { priority }),
    ...(grace === undefined ? {} : { terminationGracePeriodSeconds: grace }),
  },
});

describe('shutdown groups', () => {
  it('none unless configured', () => assert.deepEqual(shutdownGroups(config({})), []));

  it('two from the older settings', () =>
    assert.deepEqual(
      shutdownGroups(config({ shutdownGracePeriodMs: 30_000, shutdownGracePeriodCriticalPodsMs: 10_000 })),
      [
        { priority: 0, seconds: 20 },
        { priority: 2_000_000_000, seconds: 10 },
      ],
    ));

  const groups = shutdownGroups(
    config({
      shutdownGracePeriodByPodPriority: [
        { priority: 1000, shutdownGracePeriodSeconds: 5 },
        { priority: 10, shutdownGracePeriodSeconds: 20 },
        { priority: 100, shutdownGracePeriodSeconds: 15 },
      ],
    }),
  );
  it('by priority, from low to high', () => {
    assert.deepEqual(
      groups.map((g) => g.priority),
      [10, 100, 1000],
    );
    assert.equal(totalSeconds(groups), 40);
  });

  it('of one priority: the first has its pods, the last those above', () => {
    const twice = [5, 5].map((priority, i) => ({ priority, seconds: i + 1 }));
    assert.deepEqual(
      shutdownSteps([pod('same', 5), pod('above', 6)], twice).map((s) => [s.seconds, s.pods[0]?.metadata.name]),
      [
        [1, 'same'],
        [2, 'above'],
      ],
    );
  });

  it('take the pods from their priority up; groups without pods are skipped', () => {
    const pods = [pod('high', 5000), pod('edge', 10), pod('none'), pod('below', -1), pod('almost', 99)];
    assert.deepEqual(
      shutdownSteps(pods, groups).map((s) => [s.seconds, s.pods.map((p) => p.metadata.name)]),
      [
        [20, ['edge', 'none', 'below', 'almost']],
        [5, ['high']],
      ],
    );
  });

  it('give a pod the shorter of its time and theirs', () => {
    const step = { seconds: 20, pods: [] };
    assert.deepEqual(
      [graceSeconds(pod('a', 0, 5), step), graceSeconds(pod('a', 0, 60), step), graceSeconds(pod('a'), step)],
      [5, 20, 20],
    );
  });
});
