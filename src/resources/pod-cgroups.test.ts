import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import type { Cgroups } from '../host/cgroups/cgroups.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodCgroups } from './pod-cgroups.ts';

const { signal } = new AbortController();
const POD: Pod = { metadata: { name: 'p', uid: 'u' }, spec: { containers: [{ name: 'c' }] } };

const never = new Proxy({}, { get: (_, verb) => () => assert.fail(`${String(verb)} was called`) }) as Cgroups;

test('without cgroups per QoS class pods have none, and nothing is made, changed or removed', async () => {
  const cgroups = new PodCgroups(
    { cgroups: never, clock: new ManualClock(), hasExclusiveCpus: () => false },
    {
      driver: 'cgroupfs',
      root: '/',
      perQos: false,
      cpuCfsQuota: true,
      cpuPeriodUs: 100_000,
      podPidsLimit: -1,
      hugePageSizes: [],
    },
  );
  assert.equal(cgroups.parentOf(POD), '');
  assert.equal(await cgroups.ensure(POD, signal), false);
  await cgroups.update(POD, signal);
  assert.deepEqual(await cgroups.read(POD, signal), {});
  assert.deepEqual(await cgroups.listPodUids(signal), []);
  await cgroups.reduceToMinimum(podUid('u'), signal);
  await cgroups.destroy(podUid('u'), signal);
  await cgroups.destroy(POD, signal);
});

test('the cgroup of a known pod is looked for in its tier, that of a mere UID in all', async () => {
  const destroyed: string[] = [];
  const cgroups = new PodCgroups(
    {
      cgroups: { ...never, destroy: async (path: string) => void destroyed.push(path) },
      clock: new ManualClock(),
      hasExclusiveCpus: () => false,
    },
    {
      driver: 'cgroupfs',
      root: '/',
      perQos: true,
      cpuCfsQuota: true,
      cpuPeriodUs: 100_000,
      podPidsLimit: -1,
      hugePageSizes: [],
    },
  );
  await cgroups.destroy(POD, signal);
  assert.deepEqual(destroyed.splice(0), ['/kubepods/besteffort/podu']);
  await cgroups.destroy(podUid('u'), signal);
  assert.deepEqual(destroyed, ['/kubepods/podu', '/kubepods/burstable/podu', '/kubepods/besteffort/podu']);
});
