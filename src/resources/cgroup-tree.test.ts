import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import type { Cgroups, CgroupSettings } from '../host/cgroups/cgroups.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { CgroupTree } from './cgroup-tree.ts';

const burstable = (cpu: string): Pod => ({
  metadata: { name: 'p', uid: cpu },
  spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }] },
});

function setup(update: () => Promise<void>) {
  const written: (number | undefined)[] = [];
  let pods: readonly Pod[] = [];
  const tree = new CgroupTree(
    {
      cgroups: {
        update: async (_path: string, { cpuShares }: CgroupSettings) => {
          written.push(cpuShares);
          await update();
        },
      } as unknown as Cgroups,
      pods: { active: () => pods },
      node: {
        kubepodsLimit: () => new Map(),
        reservations: { kubeReserved: new Map(), systemReserved: new Map() },
      },
      events: { pod: () => undefined, node: () => undefined },
      clock: new ManualClock(),
      log: silentLogger,
    },
    { driver: 'cgroupfs', root: '/', enforce: [], systemReservedCgroup: '', kubeReservedCgroup: '' },
  );
  const refresh = (...now: Pod[]): Promise<void> => {
    pods = now;
    return tree.refresh(new AbortController().signal);
  };
  return { refresh, written };
}

test('a weight that cannot be written stops nobody and is tried again', async () => {
  let fails = true;
  const t = setup(() => (fails ? Promise.reject(new Error('Device or resource busy')) : Promise.resolve()));
  await t.refresh(burstable('1'));
  fails = false;
  await t.refresh(burstable('1'));
  await t.refresh(burstable('1'));
  assert.deepEqual(t.written, [1024, 1024], 'once more, and then no more');
});

test('one write at a time: the last one has the pods as they are then', async () => {
  const gate = Promise.withResolvers<void>();
  const t = setup(() => gate.promise);
  const first = t.refresh(burstable('1'));
  await Promise.resolve();
  const others = [t.refresh(burstable('2')), t.refresh(burstable('1'), burstable('2'))];
  await Promise.resolve();
  assert.deepEqual(t.written, [1024]);
  gate.resolve();
  await Promise.all([first, ...others]);
  assert.deepEqual(t.written, [1024, 3072]);
});
