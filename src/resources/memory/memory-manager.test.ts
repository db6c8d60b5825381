import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { podUid } from '../../core/ids.ts';
import type { Pod } from '../../core/pod.ts';
import { quantity } from '../../core/quantity.ts';
import { silentLogger } from '../../lib/logger.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { Registry } from '../../lib/metrics.ts';
import { podOfVector, type PodVector } from '../vectors.fixture.ts';
import { chooseMemoryPolicy } from './choose-policy.ts';
import { MemoryManager, memoryMetrics } from './memory-manager.ts';
import { parseMemoryState } from './memory-state-file.ts';
import { reservedMemory } from './reserved-memory.ts';

const root = mkdtempSync(join(tmpdir(), 'memory-manager-'));
const made: MemoryManager[] = [];
after(async () => {
  for (const manager of made) await manager.close();
  rmSync(root, { recursive: true, force: true });
});

const GIB = 2 ** 30;
const NODES = [0, 1].map((id) => ({
  id,
  memoryBytes: 4 * GIB,
  hugePages: [{ sizeKb: 2048, pages: 16 }],
  distances: [],
  cores: [],
}));
const ANY = { numaNodes: undefined, preferred: false };

let files = 0;

function setup(o: { file?: string; policy?: string } = {}) {
  const active: Pod[] = [];
  const running = new Set<string>();
  const registry = new Registry();
  const stateFile = o.file ?? join(root, `state-${files++}`);
  const manager = new MemoryManager(
    {
      clock: new ManualClock(),
      log: silentLogger,
      pods: {
        unfinished: () => active,
        sourcesReady: () => true,
        runningId: (uid, container) => (running.has(`${uid}/${container}`) ? 'id' : undefined),
      },
      metrics: memoryMetrics(registry, undefined),
    },
    {
      policy: chooseMemoryPolicy(NODES, {
        policy: o.policy ?? 'Static',
        reservations: [{ numaNode: 0, limits: { memory: '1Gi' } }],
        reservedOfNode: new Map([['memory', quantity('1Gi')]]),
        podLevelManagers: false,
      }),
      stateFile,
      podLevelManagers: false,
    },
  );
  made.push(manager);
  return { manager, active, running, registry, stateFile };
}

const podOf = (uid: string, containers: PodVector['containers']): Pod =>
  podOfVector({ uid, qos: 'Guaranteed', containers });

test('a container gets nodes, and its init containers’ memory goes back when it starts', async () => {
  const { manager, active, registry, stateFile } = setup();
  await manager.load();
  const pod = podOf('p', [
    { name: 'init', kind: 'init', requests: { memory: GIB } },
    { name: 'main', kind: 'main', requests: { memory: 2 * GIB, 'hugepages-2Mi': 4 * 2 ** 20 } },
  ]);
  active.push(pod);
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  for (const container of containers) await manager.allocate(pod, container, { numaNodes: [1], preferred: true });
  const main = containers[1] ?? { name: '' };
  assert.equal(await manager.pin(pod, main), '1');
  manager.created(pod, main);
  assert.deepEqual(manager.memoryOf(podUid('p'), 'main').at(-1), { type: 'memory', bytes: 2 * GIB, nodes: [1] });
  assert.deepEqual(manager.allocatableMemory()[1], { type: 'memory', bytes: 3 * GIB - 32 * 2 ** 20, nodes: [0] });
  assert.deepEqual(manager.blocksOf(podUid('p'), 'init'), []);
  await manager.close();
  const { entries } = parseMemoryState(readFileSync(stateFile, 'utf8'), 'Static', false);
  assert.deepEqual(
    [...(entries.get('p')?.get('main') ?? [])],
    [
      { numaNodes: [1], type: 'hugepages-2Mi', size: 4 * 2 ** 20 },
      { numaNodes: [1], type: 'memory', size: 2 * GIB },
    ],
  );
  assert.match(registry.render(), /kubelet_memory_manager_pinning_requests_total 2\n/);
  active.pop();
  manager.removeStale();
  assert.equal(manager.state.entries.size, 0);
  assert.equal(manager.state.machine.get(1)?.assignments, 0);
});

test('a container with memory of its own waits until it is on disk, and an ordered stop writes it', async () => {
  const folder = join(root, 'full');
  const file = join(folder, 'state');
  const { manager, active } = setup({ file });
  await manager.load();
  const pod = podOf('p', [{ name: 'main', kind: 'main', requests: { memory: GIB } }]);
  const main = pod.spec.containers[0] ?? { name: '' };
  active.push(pod);
  await manager.allocate(pod, main, { numaNodes: [1], preferred: true });
  await assert.rejects(manager.pin(pod, main), /full\/state was not written: ENOENT/);
  mkdirSync(folder);
  await manager.run(AbortSignal.abort());
  const { entries } = parseMemoryState(readFileSync(file, 'utf8'), 'Static', false);
  assert.deepEqual([...(entries.get('p')?.keys() ?? [])], ['main']);
  assert.equal(await manager.pin(pod, main), '1');
});

test('a restart finds the memory of a pod that is gone from the API server: it goes back when its container has stopped', async () => {
  const first = setup();
  await first.manager.load();
  const pod = podOf('p', [{ name: 'main', kind: 'main', requests: { memory: GIB } }]);
  await first.manager.allocate(pod, pod.spec.containers[0] ?? { name: '' }, { numaNodes: [1], preferred: true });
  await first.manager.close();
  const { manager, running } = setup({ file: first.stateFile });
  await manager.load();
  running.add('p/main');
  manager.removeStale();
  assert.equal(manager.state.entries.size, 1, 'it is being stopped');
  running.clear();
  manager.removeStale();
  assert.equal(manager.state.entries.size, 0);
});

test('a request that no node has is spread over several', async () => {
  const { manager, active } = setup();
  await manager.load();
  const pod = podOf('p', [{ name: 'main', kind: 'main', requests: { memory: 5 * GIB } }]);
  active.push(pod);
  await manager.allocate(pod, pod.spec.containers[0] ?? { name: '' }, ANY);
  assert.equal(await manager.pin(pod, pod.spec.containers[0] ?? { name: '' }), '0,1');
  const second = podOf('q', [{ name: 'main', kind: 'main', requests: { memory: 3 * GIB } }]);
  await assert.rejects(manager.allocate(second, second.spec.containers[0] ?? { name: '' }, ANY), {
    message: '[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available',
  });
});

test('policy None pins nothing; another policy than the file’s stops the start', async () => {
  const { manager, stateFile } = setup({ policy: 'None' });
  await manager.load();
  assert.equal(await manager.pin(podOf('p', []), { name: 'c' }), undefined);
  assert.match(readFileSync(stateFile, 'utf8'), /^\{"policyName":"None","machineState":\{\},"checksum":\d+\}$/);
  await assert.rejects(setup({ file: stateFile }).manager.load(), {
    message: `start memory manager error: could not restore state from checkpoint: [memorymanager] configured policy "Static" differs from state checkpoint policy "None", please drain this node and delete the memory manager checkpoint file "${stateFile}" before restarting Kubelet`,
  });
});

for (const [name, text, message] of [
  ['cut off', '{"policyName":"Sta', /: unexpected end of JSON input, please drain/],
  ['changed', '{"policyName":"Static","machineState":{},"checksum":7}', /: checkpoint is corrupted, please drain/],
  [
    'of another machine',
    '{"policyName":"Static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":null,"cells":[0]}},"checksum":0}',
    /the expected machine state is different from the real one/,
  ],
] as const)
  test(`a state file that is ${name} stops the start`, async () => {
    const file = join(root, `damaged-${name.replaceAll(' ', '-')}`);
    writeFileSync(file, text);
    await assert.rejects(setup({ file }).manager.load(), { message });
  });

test('reservedMemory has to add up to what the node reserves', () => {
  const of = (limits: Record<string, string>, kept: string) => () =>
    reservedMemory(NODES, [{ numaNode: 0, limits }], new Map([['memory', quantity(kept)]]));
  assert.doesNotThrow(of({ memory: '1Gi' }, '1Gi'));
  assert.throws(of({ memory: '1Gi' }, '1100Mi'), {
    message:
      'the total amount "1Gi" of type "memory" is not equal to the value "1100Mi" determined by Node Allocatable feature',
  });
  assert.throws(of({ memory: '1Gi', 'hugepages-2Mi': '2Mi' }, '1Gi'), {
    message:
      'the total amount "2Mi" of type "hugepages-2Mi" is not equal to the value "0" determined by Node Allocatable feature',
  });
  assert.throws(() => reservedMemory(NODES, [{ numaNode: 7, limits: {} }], new Map()), {
    message: 'the reserved memory configuration references a NUMA node 7 that does not exist on this machine',
  });
  assert.throws(
    () =>
      chooseMemoryPolicy(NODES, {
        policy: 'Static',
        reservations: [],
        reservedOfNode: new Map(),
        podLevelManagers: false,
      }),
    {
      message: '[memorymanager] you should specify the system reserved memory',
    },
  );
});

test('a pod that is admitted again after a restart needs nothing for init containers that are over', async () => {
  const { manager, active, stateFile } = setup();
  await manager.load();
  const pod = podOf('p', [
    { name: 'init', kind: 'init', requests: { memory: 3 * GIB } },
    { name: 'main', kind: 'main', requests: { memory: GIB } },
  ]);
  const other = podOf('q', [{ name: 'main', kind: 'main', requests: { memory: 2 * GIB } }]);
  active.push(pod, other);
  const containersOf = ({ spec }: Pod) => [...(spec.initContainers ?? []), ...spec.containers];
  const admit = async (to: MemoryManager, admitted: Pod): Promise<void> => {
    for (const container of containersOf(admitted))
      await to.allocate(admitted, container, { numaNodes: [1], preferred: true });
  };
  await admit(manager, pod);
  manager.created(pod, pod.spec.containers[0] ?? { name: '' });
  await admit(manager, other);
  await manager.close();
  const again = setup({ file: stateFile });
  await again.manager.load();
  again.active.push(pod, other);
  assert.deepEqual(again.manager.hints(pod, containersOf(pod)[0] ?? { name: '' }), {});
  await admit(again.manager, pod);
  assert.deepEqual(again.manager.blocksOf(podUid('p'), 'init'), []);
  assert.equal(again.manager.blocksOf(podUid('p'), 'main').length, 1);
});
