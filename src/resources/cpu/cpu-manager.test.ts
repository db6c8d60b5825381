import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { podUid } from '../../core/ids.ts';
import type { Container, Pod, ResourceRequirements } from '../../core/pod.ts';
import { silentLogger } from '../../lib/logger.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { Registry } from '../../lib/metrics.ts';
import { podOfVector, type PodVector } from '../vectors.fixture.ts';
import { chooseCpuPolicy } from './choose-policy.ts';
import { CpuManager } from './cpu-manager.ts';
import { alignmentMetrics, CpuMetrics } from './cpu-metrics.ts';
import { fromUnits } from '../../core/quantity.ts';

const root = mkdtempSync(join(tmpdir(), 'cpu-manager-'));
const made: CpuManager[] = [];
after(async () => {
  for (const manager of made) await manager.close();
  rmSync(root, { recursive: true, force: true });
});

/** One socket, four cores with two threads each: n and n+4 are siblings. */
const MACHINE = {
  sockets: 1,
  nodes: [
    {
      id: 0,
      memoryBytes: 0,
      hugePages: [],
      distances: [],
      cores: [0, 1, 2, 3].map((n) => ({ socket: 0, threads: [n, n + 4], uncoreCache: undefined })),
    },
  ],
};

const ANY = { numaNodes: undefined, preferred: false };
const signal = new AbortController().signal;

const podWith = (uid: string, ...cpus: readonly string[]): Pod =>
  podOfVector({
    uid,
    qos: 'Guaranteed',
    containers: cpus.map((cpu, at): PodVector['containers'][number] => ({ name: `c${at}`, kind: 'main', cpu })),
  });

let files = 0;

function setup(
  o: { file?: string; policy?: 'none' | 'static'; podLevelManagers?: boolean; options?: Record<string, string> } = {},
) {
  const { podLevelManagers = false } = o;
  const stateFile = o.file ?? join(root, `state-${files++}`);
  const registry = new Registry();
  const metrics = new CpuMetrics(registry, alignmentMetrics(registry), undefined);
  const active: Pod[] = [];
  const running = new Map<string, string>();
  const calls: string[] = [];
  const control = { ready: true, failing: false, broken: false };
  const policy = chooseCpuPolicy(MACHINE, {
    policy: o.policy ?? 'static',
    options: o.options ?? {},
    gates: { alpha: true, beta: true },
    reservation: fromUnits(1),
    reservedCpus: new Set([0]),
    topologyPolicy: 'none',
    podLevelManagers,
  });
  const manager = new CpuManager(
    {
      clock: new ManualClock(),
      log: silentLogger,
      pods: {
        unfinished: () => {
          if (control.broken) throw new Error('not now');
          return active;
        },
        sourcesReady: () => control.ready,
        runningId: (uid, container) => running.get(`${uid}/${container}`),
      },
      cpusets: {
        setCpus: (id, cpus) => {
          calls.push(`${id} ${cpus}`);
          return control.failing ? Promise.reject(new Error('no')) : Promise.resolve();
        },
      },
      metrics,
    },
    { policy, stateFile, reconcileEveryMs: 10_000, podLevelManagers, liftQuota: true },
  );
  metrics.observe(registry, policy, () => manager.state);
  made.push(manager);
  const allocate = async (pod: Pod): Promise<void> => {
    active.push(pod);
    for (const container of pod.spec.containers) await manager.allocate(pod, container, ANY);
  };
  return { manager, active, running, calls, control, registry, stateFile, allocate };
}

test('an exclusive container is created with its CPUs and no quota, a shared one with the rest', async () => {
  const { manager, allocate } = setup();
  await manager.load();
  const [own, shared] = [podWith('p1', '2'), podWith('p2', '500m')];
  await allocate(own);
  await allocate(shared);
  assert.deepEqual(await manager.pin(own, own.spec.containers[0] ?? { name: '' }), { cpus: '1,5', exclusive: true });
  assert.deepEqual(await manager.pin(shared, shared.spec.containers[0] ?? { name: '' }), {
    cpus: '0,2-4,6-7',
    exclusive: false,
  });
  assert.equal(manager.hasExclusiveCpus(own), true);
  assert.equal(manager.hasExclusiveCpus(shared), false);
});

test('a pod with CPUs of its own is throttled where any of its containers shares them', async () => {
  const amounts = (cpu: string): ResourceRequirements => {
    const list = { cpu, memory: '1Mi' };
    return { requests: list, limits: list };
  };
  const podLevel = (uid: string, ...containers: readonly Container[]): Pod => ({
    metadata: { name: uid, uid },
    spec: { containers, resources: amounts('2') },
  });
  const { manager } = setup({ podLevelManagers: true });
  await manager.load();
  const all = podLevel('p1', { name: 'a', resources: amounts('2') });
  const some = podLevel('p2', { name: 'a', resources: amounts('1') }, { name: 'b' });
  const none = podLevel('p3', { name: 'a' });
  for (const pod of [all, some, none]) await manager.allocatePod(pod, ANY);
  assert.deepEqual(
    [all, some, none].map((pod) => manager.hasExclusiveCpus(pod)),
    [true, false, false],
  );
  assert.deepEqual(
    some.spec.containers.map((container) => manager.ownsCpus(some, container)),
    [true, false],
  );
});

test('running containers follow the shared pool, and only when it changed', async () => {
  const { manager, allocate, running, calls, control, active } = setup();
  await manager.load();
  const shared = podWith('p1', '500m');
  await allocate(shared);
  await manager.pin(shared, shared.spec.containers[0] ?? { name: '' });
  manager.created(podUid('p1'), 'c0', 'id1');
  running.set('p1/c0', 'id1');
  await manager.reconcile(signal);
  assert.deepEqual(calls, [], 'it was created with these');
  await allocate(podWith('p2', '2'));
  running.set('p2/c0', 'id2');
  control.failing = true;
  await manager.reconcile(signal);
  assert.deepEqual(calls.splice(0), ['id1 0,2-4,6-7', 'id2 1,5']);
  control.failing = false;
  await manager.reconcile(signal);
  assert.deepEqual(calls.splice(0), ['id1 0,2-4,6-7', 'id2 1,5'], 'what failed is tried again');
  active.pop();
  running.delete('p2/c0');
  await manager.reconcile(signal);
  assert.deepEqual(calls.splice(0), ['id1 0-7'], 'the pool grows when the pod is gone');
});

test('a failed reconcile ends nothing; a change of the pools starts the next one at once', async () => {
  const { manager, allocate, running, calls, control } = setup();
  await manager.load();
  const stop = new AbortController();
  running.set('p1/c0', 'id1');
  control.broken = true;
  const run = manager.run(stop.signal);
  await Promise.resolve();
  control.broken = false;
  await allocate(podWith('p1', '2'));
  for (let turn = 0; calls.length === 0 && turn < 100; turn++) await new Promise(setImmediate);
  assert.deepEqual(calls, ['id1 1,5'], 'without waiting for the period');
  stop.abort();
  await run;
});

test('nothing is given back before all sources were heard, nor while the container runs', async () => {
  const { manager, allocate, active, control, running } = setup();
  await manager.load();
  await allocate(podWith('p1', '2'));
  active.pop();
  control.ready = false;
  manager.removeStale();
  assert.equal(manager.state.entries.size, 1);
  control.ready = true;
  running.set('p1/c0', 'id1');
  manager.removeStale();
  assert.equal(manager.state.entries.size, 1, 'its pod was deleted and is being stopped');
  running.clear();
  manager.removeStale();
  assert.equal(manager.state.entries.size, 0);
});

test('a restart finds the CPUs where they were and tells every container once', async () => {
  const first = setup();
  await first.manager.load();
  const pod = podWith('p1', '2');
  await first.allocate(pod);
  await first.manager.pin(pod, pod.spec.containers[0] ?? { name: '' });
  assert.equal(
    readFileSync(first.stateFile, 'utf8'),
    '{"policyName":"static","defaultCpuSet":"0,2-4,6-7","entries":{"p1":{"c0":"1,5"}},"checksum":3610455351}',
  );
  const second = setup({ file: first.stateFile });
  await second.manager.load();
  second.running.set('p1/c0', 'id1');
  await second.allocate(pod);
  assert.deepEqual(second.manager.exclusiveCpus(podUid('p1'), 'c0'), [1, 5]);
  await second.manager.reconcile(signal);
  assert.deepEqual(second.calls, ['id1 1,5']);
});

test('a container with CPUs of its own waits until they are on disk; one without does not', async () => {
  const folder = join(root, 'full');
  const file = join(folder, 'state');
  const { manager, allocate } = setup({ file });
  await manager.load();
  const [own, shared] = [podWith('p1', '2'), podWith('p2', '500m')];
  await allocate(own);
  await allocate(shared);
  const pin = (pod: Pod) => manager.pin(pod, pod.spec.containers[0] ?? { name: '' });
  await assert.rejects(pin(own), /full\/state was not written: ENOENT/);
  assert.equal((await pin(shared))?.cpus, '0,2-4,6-7');
  mkdirSync(folder);
  assert.equal((await pin(own))?.cpus, '1,5');
  const next = setup({ file });
  await next.manager.load();
  assert.deepEqual(next.manager.exclusiveCpus(podUid('p1'), 'c0'), [1, 5]);
});

test('an ordered stop writes what could not be written before', async () => {
  const folder = join(root, 'full-at-first');
  const file = join(folder, 'state');
  const { manager, allocate } = setup({ file });
  await manager.load();
  const pod = podWith('p1', '2');
  await allocate(pod);
  await assert.rejects(manager.pin(pod, pod.spec.containers[0] ?? { name: '' }));
  mkdirSync(folder);
  await manager.run(AbortSignal.abort());
  assert.match(readFileSync(file, 'utf8'), /"p1":\{"c0":"1,5"\}/);
});

test('what a container was to be created with is dropped with its pod', async () => {
  const { manager, active } = setup();
  await manager.load();
  const pods = ['gone', 'stays'].map((uid) => podWith(uid, '500m'));
  active.push(...pods);
  for (const pod of pods) await manager.pin(pod, pod.spec.containers[0] ?? { name: '' });
  await manager.reconcile(signal);
  assert.equal(manager.pinned, 2);
  active.shift();
  await manager.reconcile(signal);
  assert.equal(manager.pinned, 1);
});

test('a restart refuses no container that has more whole cores than are free', async () => {
  const options = { 'full-pcpus-only': 'true' };
  const first = setup({ options });
  await first.manager.load();
  const pod = podWith('p1', '4');
  await first.allocate(pod);
  await first.manager.close();
  const second = setup({ file: first.stateFile, options });
  await second.manager.load();
  await second.allocate(pod);
  assert.equal(second.manager.exclusiveCpus(podUid('p1'), 'c0').length, 4);
  await assert.rejects(second.allocate(podWith('p2', '4')), /SMT Alignment Error/);
});

test('another policy than the file’s stops the start and names the way out', async () => {
  const first = setup();
  await first.manager.load();
  const { manager } = setup({ file: first.stateFile, policy: 'none' });
  await assert.rejects(manager.load(), {
    message: `start cpu manager error: could not restore state from checkpoint: configured policy "none" differs from state checkpoint policy "static", please drain this node and delete the CPU manager checkpoint file "${first.stateFile}" before restarting Kubelet`,
  });
});

test('policy none pins nothing and leaves upstream’s empty file', async () => {
  const { manager, allocate, stateFile } = setup({ policy: 'none' });
  await manager.load();
  const pod = podWith('p1', '2');
  await allocate(pod);
  assert.deepEqual(manager.hints(pod, pod.spec.containers[0] ?? { name: '' }), {});
  assert.equal(await manager.pin(pod, pod.spec.containers[0] ?? { name: '' }), undefined);
  assert.deepEqual(manager.allocatableCpus(), []);
  assert.equal(readFileSync(stateFile, 'utf8'), '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}');
});

const DAMAGED: readonly (readonly [string, string, RegExp])[] = [
  ['cut off', '{"policyName":"static","def', /: unexpected end of JSON input, please drain/],
  ['empty', '', /: unexpected end of JSON input, please drain/],
  ['changed', '{"policyName":"static","defaultCpuSet":"0-6","checksum":1}', /: checkpoint is corrupted, please drain/],
  [
    'changed, with entries',
    '{"policyName":"static","defaultCpuSet":"0","entries":{"p":{"c":"1-7"}},"checksum":1}',
    /: json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string, please/,
  ],
  ['no list', '{"policyName":"static","defaultCpuSet":"x","checksum":0}', /parsing "x": invalid syntax, please drain/],
  [
    'other machine',
    '{"policyName":"static","defaultCpuSet":"0-3","checksum":0}',
    /^start cpu manager error: current set/,
  ],
];

for (const [name, text, message] of DAMAGED)
  test(`a state file that is ${name} stops the start`, async () => {
    const file = join(root, `damaged-${name.replaceAll(' ', '-')}`);
    writeFileSync(file, text);
    await assert.rejects(setup({ file }).manager.load(), { message });
  });

test('a file without a sum and with nulls is read', async () => {
  const file = join(root, 'by-hand');
  writeFileSync(
    file,
    '{"policyName":"static","defaultCpuSet":"0,2-7","entries":{"p":{"c":"1"},"q":null},"checksum":null}',
  );
  const { manager } = setup({ file });
  await manager.load();
  assert.deepEqual(manager.exclusiveCpus(podUid('p'), 'c'), [1]);
});

test('metrics tell of the pools', async () => {
  const { manager, allocate, registry } = setup();
  await manager.load();
  await allocate(podWith('p1', '2'));
  await assert.rejects(allocate(podWith('p2', '8')), /requested=8, available=5/);
  const text = registry.render();
  for (const line of [
    'kubelet_cpu_manager_pinning_requests_total 2',
    'kubelet_cpu_manager_pinning_errors_total 1',
    'kubelet_cpu_manager_shared_pool_size_millicores 5000',
    'kubelet_cpu_manager_exclusive_cpu_allocation_count 2',
    'kubelet_cpu_manager_allocation_per_numa{numa_node="0"} 2',
    'kubelet_container_aligned_compute_resources_count{boundary="uncore_cache",scope="container"} 1',
  ])
    assert.ok(text.includes(`${line}\n`), `${line} in\n${text}`);
});
