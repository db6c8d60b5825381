import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Resources } from '../core/pod-resources.ts';
import type { Pod } from '../core/pod.ts';
import { quantity } from '../core/quantity.ts';
import type { Cgroups, CgroupSettings } from '../host/cgroups/cgroups.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { CgroupTree } from './cgroup-tree.ts';

const burstable = (cpu: string): Pod => ({
  metadata: { name: 'p', uid: cpu },
  spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }] },
});

function setup(update: (settings: CgroupSettings) => Promise<void>, reservedPercent?: number, perQos = true) {
  const written: (number | undefined)[] = [];
  const limits: string[] = [];
  let pods: readonly Pod[] = [];
  const tree = new CgroupTree(
    {
      cgroups: {
        update: async (path: string, settings: CgroupSettings) => {
          if (settings.cpuShares !== undefined) written.push(settings.cpuShares);
          if (settings.memoryBytes !== undefined) limits.push(`${path} ${settings.memoryBytes}`);
          await update(settings);
        },
        read: async () => ({ memoryUsageBytes: 900n }),
      } as unknown as Cgroups,
      pods: { active: () => pods },
      node: {
        kubepodsLimit: () => new Map(),
        podMemoryBytes: () => 1000,
        reservations: { kubeReserved: new Map(), systemReserved: new Map() },
      },
      events: { pod: () => undefined, node: () => undefined },
      clock: new ManualClock(),
      log: silentLogger,
    },
    {
      driver: 'cgroupfs',
      root: '/',
      perQos,
      enforce: [],
      systemReservedCgroup: '',
      kubeReservedCgroup: '',
      tiers: { memoryReservation: undefined, reservedPercent },
    },
  );
  const refresh = (...now: Pod[]): Promise<void> => {
    pods = now;
    return tree.refresh(new AbortController().signal);
  };
  return { tree, refresh, written, limits };
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

test('a tier that uses more than qosReserved leaves it gets no more than it uses', async () => {
  const guaranteed: Pod = {
    metadata: { name: 'g', uid: 'g' },
    spec: {
      containers: [
        { name: 'c', resources: { requests: { cpu: '1', memory: '400' }, limits: { cpu: '1', memory: '400' } } },
      ],
    },
  };
  const t = setup(
    ({ memoryBytes = 1000 }) => (memoryBytes < 900 ? Promise.reject(new Error('EBUSY')) : Promise.resolve()),
    50,
  );
  await t.refresh(guaranteed);
  assert.deepEqual(t.limits, [
    '/kubepods/burstable 800',
    '/kubepods/burstable 900',
    '/kubepods/besteffort 800',
    '/kubepods/besteffort 900',
  ]);
});

test('without cgroups per QoS class nothing is made or written', async () => {
  const t = setup(() => Promise.resolve(), undefined, false);
  await t.tree.setUp(new AbortController().signal);
  await t.refresh(burstable('1'));
  assert.deepEqual(t.written, []);
});

for (const [enforced, cgroup, expected] of [
  ['system-reserved', 'systemReservedCgroup', 'Failed to enforce System Reserved Cgroup Limits on "/r": '],
  ['kube-reserved', 'kubeReservedCgroup', 'Failed to enforce Kube Reserved Cgroup Limits on "/r": '],
  [
    'system-reserved-compressible',
    'systemReservedCgroup',
    'Failed to enforce System Reserved Compressible Cgroup Limits on "/r": ',
  ],
  [
    'kube-reserved-compressible',
    'kubeReservedCgroup',
    'Failed to enforce Kube Reserved Compressible Cgroup Limits on "/r": ',
  ],
] as const)
  test(`a cgroup for ${enforced} that is missing keeps the kubelet from starting, and the node tells why`, async () => {
    const told: string[] = [];
    const tree = new CgroupTree(
      {
        cgroups: {
          create: async () => undefined,
          update: async () => undefined,
          exists: async () => false,
        } as unknown as Cgroups,
        pods: { active: () => [] },
        node: {
          kubepodsLimit: () => new Map(),
          podMemoryBytes: () => 0,
          reservations: { kubeReserved: new Map(), systemReserved: new Map() },
        },
        events: { pod: () => undefined, node: (type, reason, message) => told.push(`${type} ${reason} ${message}`) },
        clock: new ManualClock(),
        log: silentLogger,
      },
      {
        driver: 'cgroupfs',
        root: '/',
        perQos: true,
        enforce: [enforced],
        systemReservedCgroup: '',
        kubeReservedCgroup: '',
        tiers: { memoryReservation: undefined, reservedPercent: undefined },
        [cgroup]: '/r',
      },
    );
    const message = `${expected}["r"] cgroup does not exist`;
    await assert.rejects(tree.setUp(new AbortController().signal), { message });
    assert.equal(told.at(-1), `Warning FailedNodeAllocatableEnforcement ${message}`);
  });

for (const [what, root, limited] of [
  ['the root above the pods gets all that the machine has', '/pods', ['/pods 5000', '/r 300']],
  ['the root of all cgroups is left alone', '/', ['/r 300']],
] as const)
  test(`without tiers ${what}, and reserved cgroups their limits`, async () => {
    const limits: string[] = [];
    const amount = (bytes: string): Resources => new Map([['memory', quantity(bytes)]]);
    const tree = new CgroupTree(
      {
        cgroups: {
          exists: async () => true,
          update: async (path: string, { memoryBytes }: CgroupSettings) => void limits.push(`${path} ${memoryBytes}`),
        } as unknown as Cgroups,
        pods: { active: () => [] },
        node: {
          kubepodsLimit: (enforced) => amount(enforced ? '1' : '5000'),
          podMemoryBytes: () => 1000,
          reservations: { kubeReserved: amount('100'), systemReserved: amount('300') },
        },
        events: { pod: () => undefined, node: () => undefined },
        clock: new ManualClock(),
        log: silentLogger,
      },
      {
        driver: 'cgroupfs',
        root,
        perQos: false,
        enforce: ['system-reserved'],
        systemReservedCgroup: '/r',
        kubeReservedCgroup: '',
        tiers: { memoryReservation: undefined, reservedPercent: undefined },
      },
    );
    await tree.setUp(new AbortController().signal);
    assert.deepEqual(limits, limited);
  });
