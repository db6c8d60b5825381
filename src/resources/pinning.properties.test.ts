// Random machines and requests, 100,000 steps: whatever pods come and go, the books stay right.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CpuSet } from '../core/cpuset.ts';
import type { MachineTopology } from '../host/topology/machine-topology.ts';
import { isFault } from '../lib/errors.ts';
import { randomFrom, type Random } from '../lib/random.fixture.ts';
import { parseCpuOptions } from './cpu/cpu-options.ts';
import { CpuState } from './cpu/cpu-state.ts';
import { formatCpuState, parseCpuState } from './cpu/cpu-state-file.ts';
import { cpuTopology } from './cpu/cpu-topology.ts';
import { StaticPolicy } from './cpu/static-policy.ts';
import { MemoryPolicy } from './memory/memory-policy.ts';
import { MemoryState } from './memory/memory-state.ts';
import { formatMemoryState, parseMemoryState } from './memory/memory-state-file.ts';
import { mergeHints } from './topology/merge.ts';
import { podOfVector, type PodVector } from './vectors.fixture.ts';

const STEPS = 100_000;
const STEPS_PER_MACHINE = 500;

function randomMachine(random: Random): MachineTopology {
  const sockets = 1 + random(2);
  const numasPerSocket = 1 + random(2);
  const cores = 1 + random(6);
  const threads = 1 + random(2);
  const total = sockets * numasPerSocket * cores;
  const nodes = Array.from({ length: sockets * numasPerSocket }, (_, id) => ({
    id,
    memoryBytes: (1 + random(8)) * 2 ** 30,
    hugePages: random(2) === 0 ? [] : [{ sizeKb: 2048, pages: random(64) }],
    distances: [],
    cores: Array.from({ length: cores }, (__, core) => {
      const first = id * cores + core;
      return {
        socket: Math.floor(id / numasPerSocket),
        threads: Array.from({ length: threads }, (___, thread) => first + thread * total),
        uncoreCache: random(3) === 0 ? id : undefined,
      };
    }),
  }));
  return { nodes, sockets };
}

const OPTION_SETS: readonly Readonly<Record<string, string>>[] = [
  {},
  { 'full-pcpus-only': 'true' },
  { 'distribute-cpus-across-numa': 'true' },
  { 'distribute-cpus-across-cores': 'true' },
  { 'prefer-align-cpus-by-uncorecache': 'true' },
  { 'strict-cpu-reservation': 'true' },
  { 'full-pcpus-only': 'true', 'distribute-cpus-across-numa': 'true', 'strict-cpu-reservation': 'true' },
];

function randomPod(random: Random, uid: string): PodVector {
  const kinds = ['init', 'sidecar', 'main', 'main'] as const;
  const containers = Array.from({ length: 1 + random(3) }, (_, at) => ({
    name: `c${at}`,
    kind: at === 0 ? ('main' as const) : (kinds[random(4)] ?? 'main'),
    cpu: ['1', '2', '3', '4', '1500m', '6'][random(6)] ?? '1',
  }));
  return { uid, qos: random(5) === 0 ? 'Burstable' : 'Guaranteed', containers };
}

function union(sets: Iterable<CpuSet>): { readonly all: ReadonlySet<number>; readonly count: number } {
  const all = new Set<number>();
  let count = 0;
  for (const set of sets) {
    count += set.size;
    for (const cpu of set) all.add(cpu);
  }
  return { all, count };
}

function checkCpus(policy: StaticPolicy, state: CpuState, live: ReadonlyMap<string, PodVector>): void {
  const strict = policy.has('strict-cpu-reservation');
  const owned: CpuSet[] = [];
  for (const [uid, own] of state.entries) {
    const pod = live.get(uid);
    assert.ok(pod !== undefined, 'only live pods own CPUs');
    const kept = pod.containers.filter((c) => c.kind !== 'init').flatMap((c) => own.get(c.name) ?? []);
    const both = union(kept);
    assert.equal(both.count, both.all.size, 'containers that run together share no CPU');
    for (const { name, cpu } of pod.containers)
      assert.equal(own.get(name)?.size ?? Number(cpu), Number(cpu), 'as many as were asked for');
    owned.push(union(own.values()).all);
  }
  const { all, count } = union(owned);
  assert.equal(count, all.size, 'no CPU belongs to two pods');
  assert.ok(all.isDisjointFrom(policy.reserved), 'reserved CPUs are never given');
  assert.ok(all.isDisjointFrom(state.shared), 'owned CPUs are not shared');
  const everything = strict ? policy.allocatable : policy.topology.cpus;
  assert.equal(all.size + state.shared.size, everything.size, 'every CPU is owned or shared');
}

test('CPUs: none given twice, reserved ones never, all come back', () => {
  const random = randomFrom(16);
  let allocations = 0;
  for (let step = 0; step < STEPS;) {
    const topology = cpuTopology(randomMachine(random));
    const reservedCount = 1 + random(Math.max(1, Math.min(3, topology.cpus.size - 1)));
    const policy = new StaticPolicy(topology, {
      options: parseCpuOptions(OPTION_SETS[random(OPTION_SETS.length)] ?? {}, { alpha: true, beta: true }),
      reservedCount,
      reservedCpus: new Set(),
      topologyPolicy: 'best-effort',
      podLevelManagers: false,
    });
    const state = new CpuState(() => undefined);
    policy.validate(state);
    const live = new Map<string, PodVector>();
    const end = step + STEPS_PER_MACHINE;
    for (; step < end; step++) {
      const [first] = live.keys();
      if (first !== undefined && random(3) === 0) {
        for (const { name } of live.get(first)?.containers ?? []) policy.release(state, first, name);
        live.delete(first);
      } else {
        const vector = randomPod(random, `p${step}`);
        live.set(vector.uid, vector);
        allocations += admitCpus(policy, state, vector);
      }
      checkCpus(policy, state, live);
    }
    const file = formatCpuState('static', state, false);
    const reread = new CpuState(() => undefined, parseCpuState(file, 'static', false));
    assert.equal(formatCpuState('static', reread, false), file, 'the file says it all');
    for (const [uid, { containers }] of live) for (const { name } of containers) policy.release(state, uid, name);
    assert.equal(state.entries.size, 0);
    const everything = policy.has('strict-cpu-reservation') ? policy.allocatable : policy.topology.cpus;
    assert.deepEqual(
      [...state.shared].sort((a, b) => a - b),
      [...everything],
      'all CPUs came back',
    );
  }
  assert.ok(allocations > STEPS / 20, `${allocations} allocations are too few to mean anything`);
});

function admitCpus(policy: StaticPolicy, state: CpuState, vector: PodVector): number {
  const pod = podOfVector(vector);
  const nodes = [...policy.topology.units.numa.keys()];
  let count = 0;
  for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    const { hint } = mergeHints([policy.hints(state, pod, container)], {
      policy: 'best-effort',
      nodes,
      distances: undefined,
    });
    try {
      if (policy.allocate(state, pod, container, hint.numaNodes) !== undefined) count++;
    } catch (err) {
      assert.ok(isFault(err, 'exhausted'));
      break;
    }
  }
  return count;
}

const MIB = 2 ** 20;

test('memory: no node promises more than it has, all of it comes back', () => {
  const random = randomFrom(61);
  let allocations = 0;
  for (let step = 0; step < STEPS;) {
    const machine = randomMachine(random);
    const reserved = new Map(machine.nodes.map(({ id }) => [id, new Map([['memory', 64 * MIB]])]));
    const policy = new MemoryPolicy(machine.nodes, reserved, { podLevelManagers: false });
    const state = new MemoryState(() => undefined);
    policy.validate(state);
    const fresh = formatMemoryState('Static', state, false);
    const live: string[] = [];
    const end = step + STEPS_PER_MACHINE;
    for (; step < end; step++) {
      const first = live[0];
      if (first !== undefined && random(3) === 0) {
        live.shift();
        releaseAll(policy, state, first);
      } else {
        live.push(`p${step}`);
        allocations += admitMemory(policy, state, random, `p${step}`);
      }
      checkMemory(state);
    }
    const file = formatMemoryState('Static', state, false);
    const reread = new MemoryState(() => undefined, parseMemoryState(file, 'Static', false));
    assert.equal(formatMemoryState('Static', reread, false), file, 'the file says it all');
    for (const uid of live) releaseAll(policy, state, uid);
    assert.equal(formatMemoryState('Static', state, false), fresh, 'all memory came back');
  }
  assert.ok(allocations > STEPS / 20, `${allocations} allocations are too few to mean anything`);
});

function releaseAll(policy: MemoryPolicy, state: MemoryState, uid: string): void {
  const names = [...(state.entries.get(uid)?.keys() ?? [])];
  for (const name of names) policy.release(state, uid, name);
}

function admitMemory(policy: MemoryPolicy, state: MemoryState, random: Random, uid: string): number {
  const pod = podOfVector({
    uid,
    qos: 'Guaranteed',
    containers: Array.from({ length: 1 + random(2) }, (_, at) => ({
      name: `c${at}`,
      kind: at > 0 && random(2) === 0 ? ('init' as const) : ('main' as const),
      requests: {
        memory: (1 + random(2048)) * MIB,
        ...(random(6) === 0 && { 'hugepages-2Mi': (1 + random(16)) * 2 * MIB }),
      },
    })),
  });
  let count = 0;
  for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers])
    try {
      const hint = { numaNodes: undefined, preferred: false };
      if (policy.allocate(state, pod, container, hint) !== undefined) count++;
    } catch (err) {
      assert.ok(isFault(err, 'exhausted'));
      break;
    }
  return count;
}

function checkMemory({ machine, entries }: MemoryState): void {
  const held = new Map<string, number>();
  for (const own of entries.values())
    for (const blocks of own.values())
      for (const { type, size } of blocks) held.set(type, (held.get(type) ?? 0) + size);
  const reserved = new Map<string, number>();
  for (const { tables, assignments, cells } of machine.values()) {
    assert.ok(assignments >= 0 && cells.length >= 1);
    for (const [type, { allocatable, free, reserved: given }] of tables) {
      assert.ok(free >= 0 && given >= 0, `${type} of a node is never below zero`);
      assert.equal(free + given, allocatable, `${type} adds up`);
      reserved.set(type, (reserved.get(type) ?? 0) + given);
    }
  }
  for (const [type, sum] of reserved) assert.equal(sum, held.get(type) ?? 0, `all ${type} that is reserved is held`);
}
