import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { resourceListOf } from '../core/pod-resources.ts';
import { compareQuantities } from '../core/quantity.ts';
import type { MachineFacts } from '../host/machine.ts';
import {
  checkReservations,
  nodeAllocatable,
  nodeCapacity,
  podsLimit,
  reservedOf,
  thresholdQuantity,
  type Reservations,
} from './allocatable.ts';

const machine: MachineFacts = {
  cpus: 2,
  memoryBytes: 24_682_416 * 1024,
  hugePages: [
    { sizeBytes: 2 ** 21, pages: 0 },
    { sizeBytes: 2 ** 30, pages: 0 },
  ],
  swapBytes: 0,
  swapOn: false,
  maxPids: 32_768,
  kernelRelease: '6.1.0',
};
const PODS = { maxPods: 110, podsPerCore: 0 };
const NONE: Reservations = { ...reservedOf({}, {}, []), evictionHard: {} };

test('the recorded node', () => {
  const capacity = nodeCapacity(machine, 264_212_084 * 1024, PODS);
  assert.deepEqual(resourceListOf(capacity), {
    cpu: '2',
    'ephemeral-storage': '264212084Ki',
    'hugepages-1Gi': '0',
    'hugepages-2Mi': '0',
    memory: '24682416Ki',
    pods: '110',
  });
  const evictionHard = { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' };
  assert.deepEqual(resourceListOf(nodeAllocatable(capacity, { ...NONE, evictionHard })), {
    cpu: '2',
    'ephemeral-storage': '267847642337',
    'hugepages-1Gi': '0',
    'hugepages-2Mi': '0',
    memory: '24580016Ki',
    pods: '110',
  });
});

test('reservations, huge pages and pods per core', () => {
  const facts = { ...machine, memoryBytes: 8 * 2 ** 30, hugePages: [{ sizeBytes: 2 ** 21, pages: 512 }] };
  const capacity = nodeCapacity(facts, undefined, { maxPods: 110, podsPerCore: 10 });
  assert.equal(resourceListOf(capacity)?.['pods'], '20');
  assert.equal(resourceListOf(capacity)?.['hugepages-2Mi'], '1Gi');
  const r = {
    ...reservedOf({ cpu: '200m', memory: '1Gi' }, { cpu: '300m', memory: '512Mi' }, []),
    evictionHard: { 'memory.available': '512Mi' },
  };
  const allocatable = resourceListOf(nodeAllocatable(capacity, r));
  assert.equal(allocatable?.['cpu'], '1500m');
  assert.equal(allocatable?.['memory'], '5Gi');
  assert.equal(resourceListOf(podsLimit(capacity, r, true))?.['memory'], '6656Mi');
  assert.equal(resourceListOf(podsLimit(capacity, r, false))?.['memory'], '8Gi');
});

test('named processors replace reserved processor time', () => {
  const r = reservedOf({ cpu: '1' }, { cpu: '300m', memory: '1Gi' }, [0, 1, 2]);
  assert.deepEqual(resourceListOf(r.kubeReserved), undefined);
  assert.deepEqual(resourceListOf(r.systemReserved), { cpu: '3', memory: '1Gi' });
});

test('reserving more than there is stops the start', () => {
  const capacity = nodeCapacity(machine, undefined, PODS);
  const r = { ...reservedOf({ cpu: '3' }, {}, []), evictionHard: {} };
  assert.throws(() => checkReservations(capacity, r), {
    message:
      'invalid Node Allocatable configuration. Resource "cpu" has a reservation of 3 but capacity of 2. Expected capacity >= reservation.',
  });
  checkReservations(capacity, NONE);
});

test('an eviction threshold that is switched off reserves nothing', () => {
  const capacity = nodeCapacity(machine, 2 ** 30, PODS);
  for (const off of ['0%', '100%']) {
    const evictionHard = { 'memory.available': off, 'nodefs.available': off };
    assert.deepEqual(nodeAllocatable(capacity, { ...NONE, evictionHard }), nodeAllocatable(capacity, NONE), off);
  }
});

test('percentages are 32-bit floats', () => {
  assert.equal(thresholdQuantity('1%', 270_553_174_016n)?.nano, 2_705_531_679n * 10n ** 9n);
  assert.equal(thresholdQuantity('10%', 1000n)?.nano, 100n * 10n ** 9n);
  assert.equal(thresholdQuantity('5Gi', 1n)?.nano, 5n * 2n ** 30n * 10n ** 9n);
  assert.equal(thresholdQuantity('x%', 1n), undefined);
});

test('allocatable is between zero and capacity', () => {
  fc.assert(
    fc.property(fc.nat(1e6), fc.nat(1e6), fc.nat(100), (kube, system, percent) => {
      const capacity = nodeCapacity({ ...machine, memoryBytes: 2 ** 20 }, 2 ** 30, PODS);
      const r = {
        ...reservedOf({ memory: `${kube}` }, { memory: `${system}`, cpu: `${system}m` }, []),
        evictionHard: { 'memory.available': `${percent}%`, 'nodefs.available': `${percent}%` },
      };
      for (const [name, left] of nodeAllocatable(capacity, r)) {
        assert.ok(left.nano >= 0n);
        assert.ok(compareQuantities(left, capacity.get(name)!) <= 0);
      }
    }),
  );
});
