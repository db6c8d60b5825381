// How many CPUs are asked for, from where they could come and which are taken: the corners the recorded vectors leave out.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCpuSet } from '../../core/cpuset.ts';
import type { Container, Pod, ResourceRequirements } from '../../core/pod.ts';
import type { MachineTopology } from '../../host/topology/machine-topology.ts';
import { cpuHints } from './cpu-hints.ts';
import { exclusiveCpusOf, exclusiveCpusOfPod } from './cpu-requests.ts';
import { cpuTopology, cpusIn, groupCpus, unitsOf, type CpuTopology } from './cpu-topology.ts';
import { takeDistributed } from './take-distributed.ts';

/** One core per CPU; CPUs are numbered through. */
const machine = (
  cpusPerNode: readonly number[],
  sockets: number,
  socketOf: (node: number) => number = () => 0,
): MachineTopology => {
  let next = 0;
  const nodes = cpusPerNode.map((count, id) => ({
    id,
    memoryBytes: 0,
    hugePages: [],
    distances: [],
    cores: Array.from({ length: count }, () => ({ socket: socketOf(id), threads: [next++], uncoreCache: undefined })),
  }));
  return { nodes, sockets };
};
const topologyOf = (cpusPerNode: readonly number[], sockets = 1): CpuTopology =>
  cpuTopology(machine(cpusPerNode, sockets));

test('a machine without CPUs is refused; averages of nothing are zero', () => {
  assert.throws(() => topologyOf([]), /could not detect number of cpus/);
  const { per, counts } = topologyOf([2], 0);
  assert.deepEqual([per.socket, per.core, counts.socket], [0, 1, 0]);
});

test('CPUs the machine does not have belong to nothing', () => {
  const topology = topologyOf([2, 2]);
  assert.deepEqual([...groupCpus(topology.places, [0, 99], 'numa').keys()], [0]);
  assert.deepEqual([...cpusIn(topology, [3, 99], 'numa', new Set([1]))], [3]);
  assert.deepEqual([...unitsOf(topology, [99], 'core')], []);
});

test('hints: aligning by socket prefers nothing more where a NUMA node spans sockets', () => {
  const request = { count: 1, available: new Set([0, 1, 99]), reusable: new Set<number>(), alignBySocket: true };
  assert.deepEqual(cpuHints(topologyOf([1, 1], 4), request), [
    { numaNodes: [0], preferred: true },
    { numaNodes: [1], preferred: true },
    { numaNodes: [0, 1], preferred: false },
  ]);
  assert.deepEqual(
    cpuHints(topologyOf([1, 1], 1), request).map((h) => h.preferred),
    [true, true, true],
  );
});

test('distributed: the first choice that leaves nodes even is taken', () => {
  const topology = topologyOf([6, 4]);
  assert.equal(formatCpuSet(takeDistributed(topology, topology.cpus, 2, 1, 'packed')), '0-1');
  // Of two sockets the one with fewer free CPUs comes first.
  const twoSockets = cpuTopology(machine([6, 4, 4], 2, (node) => Math.min(node, 1)));
  assert.equal(formatCpuSet(takeDistributed(twoSockets, twoSockets.cpus, 2, 1, 'packed')), '0-1');
  const uneven = topologyOf([4, 6]);
  assert.equal(formatCpuSet(takeDistributed(uneven, uneven.cpus, 2, 1, 'packed')), '4-5');
});

test('distributed: nothing, an odd number of groups, and more than there is', () => {
  const topology = topologyOf([4, 4]);
  assert.equal(takeDistributed(topology, topology.cpus, 0, 1, 'packed').size, 0);
  assert.equal(formatCpuSet(takeDistributed(topology, topology.cpus, 3, 2, 'packed')), '0-2');
  assert.equal(formatCpuSet(takeDistributed(topology, topology.cpus, 5, 1, 'packed')), '0-2,4-5');
  assert.throws(() => takeDistributed(topology, topology.cpus, 9, 1, 'packed'), /not enough cpus available/);
});

const both = (cpu: string): ResourceRequirements => ({
  requests: { cpu, memory: '1Gi' },
  limits: { cpu, memory: '1Gi' },
});
const podOf = (containers: readonly Container[], resources?: ResourceRequirements, inits: Container[] = []): Pod => ({
  metadata: { name: 'p' },
  spec: { containers, initContainers: inits, ...(resources === undefined ? {} : { resources }) },
});
const REQUESTS: readonly (readonly [string, Pod, boolean, number, number])[] = [
  ['whole CPUs', podOf([{ name: 'a', resources: both('2') }]), false, 2, 2],
  ['a fraction', podOf([{ name: 'a', resources: both('1500m') }]), false, 0, 0],
  ['burstable', podOf([{ name: 'a', resources: { requests: { cpu: '2' } } }]), false, 0, 0],
  ['nothing', podOf([{ name: 'a' }]), false, 0, 0],
  ['pod level, gate off', podOf([{ name: 'a', resources: both('1') }], both('3')), false, 0, 0],
  ['pod level', podOf([{ name: 'a', resources: both('1') }], both('3')), true, 1, 3],
  ['pod level, container without its own', podOf([{ name: 'a' }], both('3')), true, 0, 3],
  [
    'pod level, limits alone',
    podOf([{ name: 'a', resources: { limits: both('1').limits ?? {} } }], both('3')),
    true,
    0,
    3,
  ],
  ['pod level, burstable', podOf([{ name: 'a' }], { requests: { cpu: '3' } }), true, 0, 0],
  ['pod level, only limits', podOf([{ name: 'a' }], { limits: both('3').limits ?? {} }), true, 0, 0],
  [
    'init containers and sidecars',
    podOf([{ name: 'a', resources: both('2') }], undefined, [
      { name: 's', restartPolicy: 'Always', resources: both('1') },
      { name: 'i', resources: both('4') },
    ]),
    false,
    2,
    5,
  ],
];
for (const [name, pod, podLevelManagers, ofFirst, ofPod] of REQUESTS)
  test(`asked for: ${name}`, () => {
    const [first] = pod.spec.containers;
    assert.ok(first !== undefined);
    assert.equal(exclusiveCpusOf(pod, first, { podLevelManagers }), ofFirst);
    assert.equal(exclusiveCpusOfPod(pod, { podLevelManagers }), ofPod);
  });
