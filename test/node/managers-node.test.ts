// CPU, memory and topology manager through the whole kubelet on a real runtime: what a container's process may run on is
// asked of the kernel. The machine's own topology counts, so this runs on two CPUs as on a NUMA guest (`numa-guest.test.ts`).
// runs: gate
// shows: CPU, memory and topology manager
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { formatCpuSet, type CpuSet } from '../../src/core/cpuset.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { readMachineTopology } from '../../src/host/topology/read.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { parseCpuState } from '../../src/resources/cpu/cpu-state-file.ts';
import { cpusIn, cpuTopology, unitsOf } from '../../src/resources/cpu/cpu-topology.ts';
import { parseMemoryState } from '../../src/resources/memory/memory-state-file.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { HANG_MS, until, untilSeen } from '../harness/until.ts';

const { signal } = new AbortController();
/** Emulated machines take their time. */
const PATIENCE_MS = process.env['GUEST'] === '1' ? 300_000 : HANG_MS;

const machine = await readMachineTopology();
const topology = cpuTopology(machine);
const ALL = formatCpuSet(topology.cpus);
/** Whole cores where there are enough of them. */
const isLarge = topology.counts.core >= 4;
const PINNED_CPUS = isLarge ? topology.per.core : 1;

const CONFIG = `cpuManagerPolicy: static
cpuManagerReconcilePeriod: 1s
cpuManagerPolicyOptions: {full-pcpus-only: "${isLarge}"}
memoryManagerPolicy: Static
topologyManagerPolicy: single-numa-node
systemReserved: {cpu: 500m, memory: 15Mi}
reservedMemory: [{numaNode: 0, limits: {memory: 16Mi}}]`;

const manifestOf = (name: string, cpu: number, guaranteed: boolean): string => {
  const amounts = { cpu: String(cpu), memory: '16Mi' };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      hostNetwork: true,
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'c',
          image: BUSYBOX_IMAGE,
          imagePullPolicy: 'Never',
          command: ['sleep', '100000'],
          resources: { requests: amounts, ...(guaranteed && { limits: amounts }) },
        },
      ],
    },
  });
};

let node: TestNode;
before(async () => {
  node = await startNode({ config: CONFIG, cluster: false });
});
after(() => node?.stop());

const give = (name: string, cpu: number, guaranteed = true): void =>
  writeFileSync(join(node.manifests, `${name}.json`), manifestOf(name, cpu, guaranteed));

type Running = { readonly name: string; readonly id: string; readonly uid: string; readonly cgroup: string };

/** The container of a pod, once it runs. */
const runs = (name: string): Promise<Running> =>
  until(
    `${name} runs`,
    async () => {
      const labelSelector = { 'io.kubernetes.pod.name': `${name}-n1` };
      const { containers } = await node.containerd.runtime.listContainers({ filter: { labelSelector } }, signal);
      const found = containers.find(({ state }) => state === 1);
      const uid = found?.labels['io.kubernetes.pod.uid'] ?? '';
      const tier = name === 'shared' ? 'burstable/' : '';
      return (
        found !== undefined && {
          name,
          uid,
          id: found.id,
          cgroup: `${node.cgroupRoot}/kubepods/${tier}pod${uid}/${node.containerd.cgroupOf(found.id)}`,
        }
      );
    },
    PATIENCE_MS,
  );

/** What the kernel lets the container's process run on and take memory from. */
async function allowed({ name, cgroup }: Running): Promise<{ readonly cpus: string; readonly mems: string }> {
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const [pid] = await cgroups.pids(cgroup, signal);
  assert.ok(pid !== undefined, `${name} has a process`);
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const of = (key: string): string => new RegExp(`^${key}_allowed_list:\\s*(\\S+)`, 'm').exec(status)?.[1] ?? '';
  return { cpus: of('Cpus'), mems: of('Mems') };
}

const comesToRunOn = (container: Running, cpus: string): Promise<true> =>
  until(
    `${container.name} runs on ${cpus}`,
    async () => {
      const now = (await allowed(container)).cpus;
      if (now !== cpus) throw new Error(`it runs on ${now}`);
      return true as const;
    },
    PATIENCE_MS,
  );

async function ownedBy({ uid }: Running): Promise<CpuSet> {
  const text = await readFile(join(node.dir, 'kubelet', 'cpu_manager_state'), 'utf8');
  return parseCpuState(text, 'static', false).entries.get(uid)?.get('c') ?? new Set();
}

async function memoryNodesOf({ uid }: Running): Promise<string> {
  const text = await readFile(join(node.dir, 'kubelet', 'memory_manager_state'), 'utf8');
  const blocks = parseMemoryState(text, 'Static', false).entries.get(uid)?.get('c') ?? [];
  return blocks.flatMap(({ numaNodes }) => numaNodes).join();
}

let shared: Running;
let pinned: Running;

test('a pinned container has CPUs and memory of its own, the others lose them', async () => {
  give('shared', 0.1, false);
  shared = await runs('shared');
  assert.equal((await allowed(shared)).cpus, ALL);
  give('pinned', PINNED_CPUS);
  pinned = await runs('pinned');
  const own = await ownedBy(pinned);
  assert.equal(own.size, PINNED_CPUS);
  if (isLarge) assert.equal(unitsOf(topology, own, 'core').size, 1, 'both threads of one core');
  const now = await allowed(pinned);
  assert.equal(now.cpus, formatCpuSet(own));
  assert.equal(now.mems, await memoryNodesOf(pinned));
  assert.equal(now.mems, [...unitsOf(topology, own, 'numa')].join(), 'memory of the same NUMA node');
  await comesToRunOn(shared, formatCpuSet(topology.cpus.difference(own)));
  const { cpuQuotaUs } = await (await openCgroups(systemClock, 'cgroupfs')).read(pinned.cgroup, signal);
  assert.ok((cpuQuotaUs ?? -1) < 0, `a container with CPUs of its own is not throttled, it has ${cpuQuotaUs}`);
});

test('more than a NUMA node has left is refused', async () => {
  const [first] = topology.units.numa.keys();
  const onNode = cpusIn(topology, topology.cpus, 'numa', new Set([first ?? 0]));
  give('greedy', onNode.size + topology.per.core * (isLarge ? 1 : 0));
  await untilSeen(
    'greedy is refused',
    () => node.log(),
    (text) => /"pod rejected".*greedy.*TopologyAffinityError/.test(text),
    PATIENCE_MS,
  );
  rmSync(join(node.manifests, 'greedy.json'));
});

test('a restart of the kubelet leaves everything where it is', async () => {
  const [own, beside] = [await allowed(pinned), await allowed(shared)];
  const told = node.cri.counts.get('UpdateContainerResources') ?? 0;
  await node.kubelet.kill('SIGKILL');
  await node.kubelet.start(node.healthzPort);
  await untilSeen(
    'every container is told its CPUs once more',
    () => node.cri.counts.get('UpdateContainerResources') ?? 0,
    (seen) => seen >= told + 2,
    PATIENCE_MS,
  );
  assert.deepEqual([await allowed(pinned), await allowed(shared)], [own, beside]);
  assert.equal((await runs('pinned')).id, pinned.id, 'it was not restarted');
});

test('when all containers are gone, as after a reboot, the pods come back on the CPUs they had', async () => {
  const own = formatCpuSet(await ownedBy(pinned));
  await node.kubelet.kill('SIGKILL');
  const { items } = await node.containerd.runtime.listPodSandbox({}, signal);
  for (const { id } of items) {
    await node.containerd.runtime.stopPodSandbox({ podSandboxId: id }, signal);
    await node.containerd.runtime.removePodSandbox({ podSandboxId: id }, signal);
  }
  await node.kubelet.start(node.healthzPort);
  const [back, beside] = [await runs('pinned'), await runs('shared')];
  assert.notEqual(back.id, pinned.id);
  [pinned, shared] = [back, beside];
  assert.equal((await allowed(pinned)).cpus, own);
  await comesToRunOn(shared, formatCpuSet(topology.cpus.difference(await ownedBy(pinned))));
});

test('the CPUs of a pod that is gone are shared again', async () => {
  rmSync(join(node.manifests, 'pinned.json'));
  await comesToRunOn(shared, ALL);
  await untilSeen(
    'its file says so, too',
    async () => (await ownedBy(pinned)).size,
    (seen) => seen === 0,
    PATIENCE_MS,
  );
});

test('another policy is refused until the state file is gone', async () => {
  await node.kubelet.kill('SIGTERM');
  const text = await readFile(join(node.dir, 'config.yaml'), 'utf8');
  await node.reconfigure(() =>
    text.replace('cpuManagerPolicy: static', 'cpuManagerPolicy: none').replace(/^cpuManagerPolicyOptions.*$/m, ''),
  );
  await node.kubelet.start();
  await until('the kubelet has ended', () => node.kubelet.crashed, PATIENCE_MS);
  assert.match(
    await node.log(),
    /configured policy \\?"none\\?" differs from state checkpoint policy \\?"static\\?", please drain this node and delete the CPU manager checkpoint file/,
  );
});
