// Pods with resources of their own (gate `PodLevelResourceManagers`): one share for the pod, parts of it for its containers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCpuSet } from '../core/cpuset.ts';
import type { Container, Pod, ResourceList } from '../core/pod.ts';
import { quantity } from '../core/quantity.ts';
import { chooseCpuPolicy } from './cpu/choose-policy.ts';
import { CpuState } from './cpu/cpu-state.ts';
import { formatCpuState, parseCpuState } from './cpu/cpu-state-file.ts';
import { allocatePodCpus } from './cpu/pod-partition.ts';
import type { StaticPolicy } from './cpu/static-policy.ts';
import { chooseMemoryPolicy } from './memory/choose-policy.ts';
import type { MemoryPolicy } from './memory/memory-policy.ts';
import { MemoryState } from './memory/memory-state.ts';
import { formatMemoryState, parseMemoryState } from './memory/memory-state-file.ts';
import { allocatePodMemory } from './memory/pod-partition.ts';

const MIB = 2 ** 20;
const NODES = [0, 1].map((id) => ({
  id,
  memoryBytes: 1024 * MIB,
  hugePages: [],
  distances: [],
  cores: [0, 1, 2, 3].map((n) => ({ socket: id, threads: [id * 4 + n], uncoreCache: undefined })),
}));

const amounts = (cpu: string, memory: string): ResourceList => ({ cpu, memory });
const box = (name: string, own?: ResourceList, sidecar = false): Container => ({
  name,
  ...(sidecar && { restartPolicy: 'Always' as const }),
  ...(own !== undefined && { resources: { requests: own, limits: own } }),
});

const podOf = (cpu: string, memory: string, inits: readonly Container[], containers: readonly Container[]): Pod => ({
  metadata: { name: 'p', uid: 'p' },
  spec: {
    initContainers: inits,
    containers,
    resources: { requests: amounts(cpu, memory), limits: amounts(cpu, memory) },
  },
});

const CPU_BASE = { policy: 'static', options: {}, gates: { alpha: true, beta: true }, topologyPolicy: 'restricted' };

function cpuPolicy(podLevelManagers = true): StaticPolicy {
  const policy = chooseCpuPolicy(
    { nodes: NODES, sockets: 2 },
    { ...CPU_BASE, reservation: quantity('1'), reservedCpus: new Set([0]), podLevelManagers },
  );
  assert.ok(policy !== undefined);
  return policy;
}

const setsOf = (state: CpuState): Record<string, string> =>
  Object.fromEntries([...(state.entries.get('p') ?? [])].map(([name, cpus]) => [name, formatCpuSet(cpus)]));

const POD = podOf(
  '4',
  '400Mi',
  [box('first'), box('helper', amounts('1', '100Mi'), true), box('second', amounts('2', '50Mi'))],
  [box('own', amounts('1', '100Mi')), box('rest'), box('fraction', amounts('500m', '10Mi'))],
);

test('CPUs: containers with whole CPUs get theirs, the others share what is left of the pod’s', () => {
  const policy = cpuPolicy();
  const state = new CpuState(() => undefined);
  policy.validate(state);
  const shares = allocatePodCpus(policy, state, POD, [1]);
  assert.equal(formatCpuSet(state.pods.get('p') ?? new Set()), '4-7');
  assert.deepEqual(setsOf(state), {
    first: '4-7',
    helper: '4',
    second: '5-6',
    own: '5',
    rest: '6-7',
    fraction: '6-7',
  });
  assert.deepEqual(
    shares.filter(({ exclusive }) => exclusive).map(({ container }) => container),
    ['helper', 'second', 'own'],
  );
  const file = formatCpuState('static', state, true);
  assert.match(file, /"podEntries":\{"p":\{"cpuSet":"4-7"\}\}/);
  const reread = new CpuState(() => undefined, parseCpuState(file, 'static', true));
  policy.validate(reread);
  assert.equal(formatCpuState('static', reread, true), file);
  for (const name of ['first', 'helper', 'second', 'own', 'rest']) policy.release(state, 'p', name);
  assert.equal(formatCpuSet(state.shared), '0-3', 'the pod keeps its CPUs until its last container is gone');
  policy.release(state, 'p', 'fraction');
  assert.equal(formatCpuSet(state.shared), '0-7');
});

test('CPUs: a pod of which some container would be left without any is rejected', () => {
  const state = new CpuState(() => undefined);
  const policy = cpuPolicy();
  policy.validate(state);
  const full = podOf('2', '1Gi', [], [box('a', amounts('2', '1Mi')), box('b')]);
  assert.throws(() => allocatePodCpus(policy, state, full, undefined), {
    message:
      'pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers',
    detail: { reason: 'EmptyPodSharedPoolError' },
  });
  const init = podOf('1', '1Gi', [box('s', amounts('1', '1Mi'), true), box('i')], [box('m', amounts('1', '1Mi'))]);
  assert.throws(() => allocatePodCpus(policy, state, init, undefined), {
    message: 'pod rejected, pod has shared init containers but no cpus available for them',
  });
});

test('CPUs: without the gate such pods share, and an older file is read with it', () => {
  const policy = cpuPolicy(false);
  assert.equal(policy.requestedByPod(POD), 0);
  const old = '{"policyName":"static","defaultCpuSet":"0-7","checksum":0}';
  assert.equal(parseCpuState(old, 'static', true).pods.size, 0);
});

function memoryPolicy(): MemoryPolicy {
  const policy = chooseMemoryPolicy(NODES, {
    policy: 'Static',
    reservations: [{ numaNode: 0, limits: { memory: '64Mi' } }],
    reservedOfNode: new Map([['memory', quantity('64Mi')]]),
    podLevelManagers: true,
  });
  assert.ok(policy !== undefined);
  return policy;
}

const NODE_1 = { numaNodes: [1], preferred: true };

test('CPUs and memory: nothing is given twice, nor to who asks for none', () => {
  const [cpus, memory] = [new CpuState(() => undefined), new MemoryState(() => undefined)];
  const policies = { cpu: cpuPolicy(), memory: memoryPolicy() };
  policies.cpu.validate(cpus);
  policies.memory.validate(memory);
  const none: Pod = { metadata: { name: 'n', uid: 'n' }, spec: { containers: [box('a')] } };
  assert.deepEqual(allocatePodCpus(policies.cpu, cpus, none, [1]), []);
  assert.deepEqual(allocatePodMemory(policies.memory, memory, none, NODE_1), []);
  allocatePodCpus(policies.cpu, cpus, POD, [1]);
  assert.deepEqual(allocatePodCpus(policies.cpu, cpus, POD, [1]), []);
  allocatePodMemory(policies.memory, memory, POD, NODE_1);
  assert.deepEqual(allocatePodMemory(policies.memory, memory, POD, NODE_1), []);
});

test('memory: a sidecar without memory of its own shares what is left, a pod that leaves none is rejected', () => {
  const policy = memoryPolicy();
  const state = new MemoryState(() => undefined);
  policy.validate(state);
  const shared = podOf('2', '100Mi', [box('s', undefined, true)], [box('m', amounts('1', '60Mi'))]);
  allocatePodMemory(policy, state, shared, NODE_1);
  assert.equal(state.entries.get('p')?.get('s')?.[0]?.size, 40 * MIB);
  const { initContainers: _, ...plain } = shared.spec;
  const other: Pod = { metadata: { name: 'q', uid: 'q' }, spec: { ...plain, containers: [box('m')] } };
  assert.deepEqual(allocatePodMemory(policy, state, other, NODE_1), [{ container: 'm', exclusive: false }]);
  const full = podOf('2', '100Mi', [], [box('a', amounts('1', '100Mi')), box('b')]);
  assert.throws(() => allocatePodMemory(policy, new MemoryState(() => undefined), full, NODE_1), {
    detail: { reason: 'EmptyPodSharedPoolError' },
  });
});

test('memory: one block for the pod, parts of it for its containers', () => {
  const policy = memoryPolicy();
  const state = new MemoryState(() => undefined);
  policy.validate(state);
  allocatePodMemory(policy, state, POD, { numaNodes: [1], preferred: true });
  const sizes = Object.fromEntries(
    [...(state.entries.get('p') ?? [])].map(([name, blocks]) => [name, (blocks[0]?.size ?? 0) / MIB]),
  );
  assert.deepEqual(sizes, { first: 400, helper: 100, second: 50, own: 100, rest: 190, fraction: 10 });
  assert.equal(state.machine.get(1)?.tables.get('memory')?.reserved, 400 * MIB);
  const file = formatMemoryState('Static', state, true);
  const reread = new MemoryState(() => undefined, parseMemoryState(file, 'Static', true));
  policy.validate(reread);
  assert.equal(formatMemoryState('Static', reread, true), file);
  const names = [...(state.entries.get('p')?.keys() ?? [])];
  for (const name of names) policy.release(state, 'p', name);
  assert.equal(state.machine.get(1)?.tables.get('memory')?.reserved, 0);
  assert.equal(state.pods.size, 0);
});
