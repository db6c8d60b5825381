// CPU, memory and topology manager through the whole kubelet on a real runtime: what a container's process may run on is
// asked of the kernel. The machine's own topology counts, so it works on two CPUs as on a NUMA guest.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { formatCpuSet, tryParseCpuSet, type CpuSet } from '../../src/core/cpuset.ts';
import type { Pod } from '../../src/core/pod.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { readMachineTopology } from '../../src/host/topology/read.ts';
import { PODS } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { parseCpuState } from '../../src/resources/cpu/cpu-state-file.ts';
import { parseMemoryState } from '../../src/resources/memory/memory-state-file.ts';
import { cpuTopology } from '../../src/resources/cpu/cpu-topology.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';

const { signal } = new AbortController();
const NAMESPACE = 'default';
/** Emulated machines take their time. */
const PATIENCE_MS = process.env['GUEST'] === '1' ? 240_000 : 30_000;

const machine = await readMachineTopology();
const topology = cpuTopology(machine);
const ALL = formatCpuSet(topology.cpus);

const CONFIG = `cpuManagerPolicy: static
cpuManagerReconcilePeriod: 1s
memoryManagerPolicy: Static
topologyManagerPolicy: single-numa-node
systemReserved: {cpu: 500m, memory: 15Mi}
reservedMemory: [{numaNode: 0, limits: {memory: 16Mi}}]`;

const podOf = (name: string, cpu: string, guaranteed = true): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      nodeName: 'n1',
      hostNetwork: true,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [
        {
          name: 'c',
          image: BUSYBOX_IMAGE,
          imagePullPolicy: 'Never',
          command: ['sleep', '100000'],
          resources: {
            requests: { cpu, memory: '16Mi' },
            ...(guaranteed && { limits: { cpu, memory: '16Mi' } }),
          },
        },
      ],
    },
  }) as unknown as Pod;

let node: TestNode;
before(async () => {
  node = await startNode({ config: CONFIG });
});
after(() => node?.stop());

const podNow = (name: string): Promise<Pod> => node.client.get(PODS, { namespace: NAMESPACE, name }, signal);
async function runs(pod: Pod): Promise<Pod> {
  const { name } = pod.metadata;
  await until(
    `${name} may be made`,
    () => node.client.create(PODS, { namespace: NAMESPACE }, pod, signal).then(() => true),
    PATIENCE_MS,
  );
  return until(
    `${name} runs`,
    async () => {
      const now = await podNow(name);
      return now.status?.phase === 'Running' && now.status.containerStatuses?.[0]?.ready === true && now;
    },
    PATIENCE_MS,
  );
}

const cgroupOf = ({ metadata, status }: Pod): string => {
  const tier = status?.qosClass === 'Guaranteed' ? '' : 'burstable/';
  const id = status?.containerStatuses?.[0]?.containerID?.split('//')[1] ?? '';
  return `${node.cgroupRoot}/kubepods/${tier}pod${metadata.uid}/${id}`;
};

/** What the kernel lets the pod's process run on and take memory from. */
async function allowed(pod: Pod): Promise<{ readonly cpus: string; readonly mems: string }> {
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const [pid] = await cgroups.pids(cgroupOf(pod), signal);
  assert.ok(pid !== undefined, `${pod.metadata.name} has a process`);
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const of = (key: string): string => new RegExp(`^${key}_allowed_list:\\s*(\\S+)`, 'm').exec(status)?.[1] ?? '';
  return { cpus: of('Cpus'), mems: of('Mems') };
}

const comesToRunOn = (pod: Pod, cpus: string): Promise<true> =>
  until(
    `${pod.metadata.name} runs on ${cpus}`,
    async () => {
      const now = (await allowed(pod)).cpus;
      if (now !== cpus) throw new Error(`it runs on ${now}`);
      return true as const;
    },
    PATIENCE_MS,
  );

async function ownedBy(pod: Pod): Promise<CpuSet> {
  const text = await readFile(join(node.dir, 'kubelet', 'cpu_manager_state'), 'utf8');
  return (
    parseCpuState(text, 'static', false)
      .entries.get(pod.metadata.uid ?? '')
      ?.get('c') ?? new Set()
  );
}

async function memoryNodesOf(pod: Pod): Promise<string> {
  const text = await readFile(join(node.dir, 'kubelet', 'memory_manager_state'), 'utf8');
  const blocks =
    parseMemoryState(text, 'Static', false)
      .entries.get(pod.metadata.uid ?? '')
      ?.get('c') ?? [];
  return blocks.flatMap(({ numaNodes }) => numaNodes).join();
}

let shared: Pod;
let pinned: Pod;

test('a pinned container has CPUs and memory of its own, the others lose them', async () => {
  shared = await runs(podOf('shared', '100m', false));
  assert.equal((await allowed(shared)).cpus, ALL);
  pinned = await runs(podOf('pinned', '1'));
  const own = await ownedBy(pinned);
  assert.equal(own.size, 1);
  const now = await allowed(pinned);
  assert.equal(now.cpus, formatCpuSet(own));
  assert.equal(now.mems, await memoryNodesOf(pinned));
  await comesToRunOn(shared, formatCpuSet(topology.cpus.difference(own)));
  const { cpuQuotaUs } = await (await openCgroups(systemClock, 'cgroupfs')).read(cgroupOf(pinned), signal);
  assert.ok((cpuQuotaUs ?? -1) < 0, `a container with CPUs of its own is not throttled, it has ${cpuQuotaUs}`);
});

test('more than a NUMA node has is refused', async () => {
  const greedy = podOf('greedy', String(topology.cpus.size));
  await node.client.create(PODS, { namespace: NAMESPACE }, greedy, signal);
  const { status } = await until(
    'greedy is refused',
    async () => {
      const now = await podNow('greedy');
      return now.status?.phase === 'Failed' && now;
    },
    PATIENCE_MS,
  );
  assert.equal(status?.reason, 'TopologyAffinityError');
  assert.match(status.message ?? '', /Resources cannot be allocated with Topology locality$/);
});

test('a restart of the kubelet leaves everything where it is', async () => {
  const [own, beside] = [await allowed(pinned), await allowed(shared)];
  const before = node.cri.counts.get('UpdateContainerResources') ?? 0;
  await node.kubelet.kill('SIGKILL');
  await node.kubelet.start(node.healthzPort);
  await until(
    'every container is told its CPUs once more',
    () => (node.cri.counts.get('UpdateContainerResources') ?? 0) >= before + 2,
    PATIENCE_MS,
  );
  assert.deepEqual([await allowed(pinned), await allowed(shared)], [own, beside]);
  assert.equal((await podNow('pinned')).status?.containerStatuses?.[0]?.restartCount, 0);
});

test('the CPUs of a pod that is gone are shared again', async () => {
  await node.client.delete(PODS, { namespace: NAMESPACE, name: 'pinned' }, {}, signal);
  await comesToRunOn(shared, ALL);
  assert.equal((await ownedBy(pinned)).size, 0);
});

test('another policy is refused until the state file is gone', async () => {
  await node.kubelet.kill('SIGTERM');
  const config = join(node.dir, 'config.yaml');
  const text = await readFile(config, 'utf8');
  await node.reconfigure((before) => before.replace('cpuManagerPolicy: static', 'cpuManagerPolicy: none'));
  // The health port opens before the rest, so the start may seem to succeed for a moment.
  await node.kubelet.start();
  await until('the kubelet has ended', () => node.kubelet.crashed, PATIENCE_MS);
  assert.match(
    await node.log(),
    /configured policy \\?"none\\?" differs from state checkpoint policy \\?"static\\?", please drain this node and delete the CPU manager checkpoint file/,
  );
  await node.reconfigure(() => text);
  await node.kubelet.start(node.healthzPort);
});

test('this machine can run these tests', () => {
  assert.ok(tryParseCpuSet(ALL) !== undefined && topology.cpus.size >= 2, `there is only ${ALL}`);
});
