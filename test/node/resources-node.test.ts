// Limits as a user meets them, through the whole kubelet on a real runtime: processor time, processes, memory.
// runs: gate
// shows: cgroups v1 and v2, both drivers, QoS tiers, allocatable
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Pod, PodCondition, ResourceRequirements } from '../../src/core/pod.ts';
import { milliOf } from '../../src/core/quantity.ts';
import { detectCgroups } from '../../src/host/cgroups/layout.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { EVENTS, NODES, PODS } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';

const { signal } = new AbortController();
const NAMESPACE = 'default';
type Name = 'hog' | 'bomb' | 'oom' | 'whole' | 'unborn';

/** The inner shell gives up when it cannot fork; what it started stays. */
const BOMB = "sh -c 'i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done'; exec sleep 1000";

const manifest = (name: Name, script: string, limits: object): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      nodeName: 'n1',
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [
        {
          name: 'c',
          image: BUSYBOX_IMAGE,
          imagePullPolicy: 'Never',
          command: ['sh', '-c', script],
          resources: { limits },
        },
      ],
    },
  }) as unknown as Pod;

/** With a second container that has no limits of its own, only those of the pod. */
function withWholeLimits(pod: Pod): Pod {
  const [own] = pod.spec.containers;
  assert.ok(own);
  const heir = { ...own, name: 'heir', resources: {} };
  return { ...pod, spec: { ...pod.spec, containers: [own, heir], resources: amounts('200m', '32Mi') } };
}
const amounts = (cpu: string, memory: string): ResourceRequirements => ({
  limits: { cpu, memory },
  requests: { cpu, memory },
});

const PODS_MADE: Readonly<Partial<Record<Name, Pod>>> = {
  hog: manifest('hog', 'while :; do :; done', { cpu: '100m', memory: '32Mi' }),
  bomb: manifest('bomb', BOMB, { cpu: '200m', memory: '64Mi' }),
  whole: withWholeLimits(manifest('whole', 'exec sleep 1000', { cpu: '100m', memory: '16Mi' })),
  // The runtime hears of kills for memory only some time after the start.
  oom: manifest('oom', 'sleep 2; x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done', { cpu: '500m', memory: '16Mi' }),
};

const KUBELET_CGROUP = `/kts-kubelet-${process.pid}`;

let node: TestNode;
before(async () => {
  node = await startNode({ config: `podPidsLimit: 20\nkubeletCgroups: ${KUBELET_CGROUP}` });
  for (const pod of Object.values(PODS_MADE))
    await until(`${pod.metadata.name} may be made`, () =>
      node.client.create(PODS, { namespace: NAMESPACE }, pod, signal).then(() => true),
    );
});
after(async () => {
  await node?.stop();
  await (await openCgroups(systemClock, 'cgroupfs')).destroy(KUBELET_CGROUP, signal);
});

test('the kubelet runs in the cgroup it was given', async () => {
  await until('it is there', async () => {
    const cgroups = await readFile(`/proc/${node.kubelet.pid}/cgroup`, 'utf8');
    return cgroups.split('\n').some((line) => line.endsWith(`:${KUBELET_CGROUP}`));
  });
});

const podNow = (name: Name): Promise<Pod> => node.client.get(PODS, { namespace: NAMESPACE, name }, signal);
const comesTo = (name: Name, phase: string): Promise<Pod> =>
  until(`${name} is ${phase}`, async () => {
    const pod = await podNow(name);
    return pod.status?.phase === phase && pod;
  });
const podCgroup = (pod: Pod): string => `${node.cgroupRoot}/kubepods/pod${pod.metadata.uid}`;

test('a processor hog in a 100m pod uses 100m', async () => {
  const cgroup = podCgroup(await comesTo('hog', 'Running'));
  const layout = await detectCgroups();
  const usedMs = async (): Promise<number> => {
    if (layout.version === 2) {
      const stat = await readFile(join(layout.mountPoint, cgroup, 'cpu.stat'), 'utf8');
      return Number(/usage_usec (\d+)/.exec(stat)?.[1]) / 1e3;
    }
    const mount = layout.hierarchies.find((h) => h.controllers.includes('cpuacct'))?.mountPoint ?? '';
    return Number(await readFile(join(mount, cgroup, 'cpuacct.usage'), 'utf8')) / 1e6;
  };
  await untilSeen('it runs', usedMs, (seen) => seen > 0);
  const share = async (): Promise<number> => {
    const [start, from] = [performance.now(), await usedMs()];
    await timePasses(3000, 'measuring');
    return ((await usedMs()) - from) / (performance.now() - start);
  };
  await timePasses(500, 'measuring');
  // Never more; as much only when the others on this machine leave it.
  const used = await untilSeen('it gets what it asked for', share, (seen) => seen > 0.07);
  assert.ok(used < 0.12, `used ${used.toFixed(3)} of a processor`);
});

test('a fork bomb stays within podPidsLimit', async () => {
  const cgroup = podCgroup(await comesTo('bomb', 'Running'));
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const count = async (): Promise<number> => (await cgroups.pids(cgroup, signal)).length;
  await untilSeen('the bomb goes off', count, (seen) => seen > 10);
  await timePasses(500, 'nothing to happen');
  const length = await count();
  assert.ok(length > 10 && length <= 20, `${length} processes`);
});

test('a container over its memory limit is killed and says so', async () => {
  const { status, metadata } = await comesTo('oom', 'Failed');
  const ended = status?.containerStatuses?.[0]?.state?.terminated;
  assert.equal(ended?.reason, 'OOMKilled');
  assert.equal(ended.exitCode, 137);
  const query = { fieldSelector: `involvedObject.uid=${metadata.uid},reason=OOMKilling` };
  const [event] = await until('the event is there', async () => {
    const { items } = await node.client.list(EVENTS, { namespace: NAMESPACE, query }, signal);
    return items.length > 0 && items;
  });
  assert.equal(event?.type, 'Warning');
  assert.equal(event.involvedObject.fieldPath, 'spec.containers{c}');
  assert.match(
    event.message ?? '',
    /^Process sh \(pid \d+\) was killed: the (container|pod)'s memory limit was exhausted$/,
  );
});

/** Shares, quota and memory limit as the kernel has them, of the pod and of one of its containers. */
async function inKernel(pod: Pod, container = 'heir'): Promise<readonly (readonly unknown[])[]> {
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const id = pod.status?.containerStatuses?.find((c) => c.name === container)?.containerID?.split('//')[1] ?? '';
  return Promise.all(
    [podCgroup(pod), ...(id === '' ? [] : [`${podCgroup(pod)}/${node.containerd.cgroupOf(id)}`])].map(async (path) => {
      const { cpuShares, cpuQuotaUs, memoryLimitBytes } = await cgroups.read(path, signal);
      return [cpuShares, cpuQuotaUs, memoryLimitBytes];
    }),
  );
}
const resize = (cpu: string, memory: string): Promise<Pod> =>
  node.client.patch(
    PODS,
    { namespace: NAMESPACE, name: 'whole', subresource: 'resize' },
    { spec: { resources: amounts(cpu, memory) } },
    signal,
  );
const resizeCondition = (pod: Pod, type: string): PodCondition | undefined =>
  pod.status?.conditions?.find((c) => c.type === type);
/** The pod once its resources are in force and nothing more is under way. */
const resizedTo = (resources: ResourceRequirements, generation: number): Promise<Pod> =>
  until('the resize is done', async () => {
    const pod = await podNow('whole');
    const done =
      resizeCondition(pod, 'PodResizeInProgress') === undefined && isDeepStrictEqual(pod.status?.resources, resources);
    return done && pod.status?.observedGeneration === generation && pod;
  });

test('the limits of a pod as a whole change in place, through a refusal and a crash half-way', async () => {
  const MI = 2n ** 20n;
  const start = await comesTo('whole', 'Running');
  assert.deepEqual(await inKernel(start), [
    [204, 20_000, 32n * MI],
    [204, 20_000, 32n * MI],
  ]);
  assert.deepEqual(start.status?.allocatedResources, { cpu: '200m', memory: '32Mi' });
  await resize('400m', '64Mi');
  const grown = await resizedTo(amounts('400m', '64Mi'), 2);
  assert.deepEqual(await inKernel(grown), [
    [409, 40_000, 64n * MI],
    [409, 40_000, 64n * MI],
  ]);
  await resize('9000', '64Mi');
  const refused = await until('it is refused', async () => {
    const pod = await podNow('whole');
    return resizeCondition(pod, 'PodResizePending')?.observedGeneration === 3 && pod;
  });
  const { reason, message } = resizeCondition(refused, 'PodResizePending') ?? {};
  assert.equal(reason, 'Deferred');
  assert.match(message ?? '', /^Node didn't have enough resource: cpu, requested: 9000000, used: \d+, capacity: \d+$/);
  assert.deepEqual(refused.status?.allocatedResources, { cpu: '400m', memory: '64Mi' });
  // The memory shrinks, then the runtime is out of reach for the processor time, and the kubelet dies.
  node.cri.inject({ verb: 'UpdateContainerResources', fault: { do: 'hang' }, when: isSecondUpdate() });
  await resize('100m', '24Mi');
  await untilSeen(
    'half of it is done',
    async () => (await inKernel(refused))[0]?.[2],
    (seen) => seen === 24n * MI,
  );
  await node.kubelet.kill('SIGKILL');
  node.cri.lift();
  assert.deepEqual((await inKernel(refused))[0], [409, 40_000, 24n * MI]);
  await node.kubelet.start(node.healthzPort);
  const shrunk = await resizedTo(amounts('100m', '24Mi'), 4);
  assert.deepEqual(await inKernel(shrunk), [
    [102, 10_000, 24n * MI],
    [102, 10_000, 24n * MI],
  ]);
  assert.deepEqual(
    shrunk.status?.containerStatuses?.map((c) => c.restartCount),
    [0, 0],
  );
  assert.equal(resizeCondition(shrunk, 'PodResizePending'), undefined);
  const query = { fieldSelector: `involvedObject.uid=${start.metadata.uid}` };
  await until('the events are there', async () => {
    const { items } = await node.client.list(EVENTS, { namespace: NAMESPACE, query }, signal);
    const seen = new Set(items.map((e) => e.reason).filter((r) => r?.startsWith('Resize')));
    return isDeepStrictEqual(seen, new Set(['ResizeStarted', 'ResizeCompleted', 'ResizeDeferred']));
  });
});

test('a resize that has to wait is granted as soon as another pod makes room', async () => {
  const { status } = await node.client.get(NODES, { name: 'n1' }, signal);
  const cpu = `${milliOf(status?.allocatable?.['cpu']) - 250}m`; // others have 300m
  await resize(cpu, '24Mi');
  const pending = await until('it waits', async () => {
    const pod = await podNow('whole');
    return resizeCondition(pod, 'PodResizePending')?.observedGeneration === pod.metadata.generation && pod;
  });
  assert.equal(resizeCondition(pending, 'PodResizePending')?.reason, 'Deferred');
  await node.client.delete(PODS, { namespace: NAMESPACE, name: 'bomb' }, {}, signal);
  const granted = await until('it is granted', async () => {
    const pod = await podNow('whole');
    return pod.status?.allocatedResources?.['cpu'] === cpu && pod;
  });
  assert.equal(resizeCondition(granted, 'PodResizePending'), undefined);
});

test('a resize before the first start reaches the cgroup of the pod', async () => {
  const made = manifest('unborn', 'exec sleep 1000', { cpu: '50m', memory: '16Mi' });
  const [container] = made.spec.containers;
  assert.ok(container);
  const unborn = { ...made, spec: { ...made.spec, containers: [{ ...container, image: 'localhost/none:1' }] } };
  const pod = await node.client.create(PODS, { namespace: NAMESPACE }, unborn, signal);
  const waitsFor = (quota: number): Promise<unknown> =>
    until(`the quota is ${quota}`, async () => (await inKernel(pod, 'c'))[0]?.[1] === quota);
  await waitsFor(5000);
  await until('it has no image', async () => {
    const { status } = await podNow('unborn');
    return status?.containerStatuses?.[0]?.state.waiting?.reason === 'ErrImageNeverPull';
  });
  const at = { namespace: NAMESPACE, name: 'unborn', subresource: 'resize' };
  const containers = [{ name: 'c', resources: amounts('80m', '16Mi') }];
  await node.client.patch(PODS, at, { spec: { containers } }, signal);
  await waitsFor(8000);
});

/** The first update is about memory, the second about processor time. */
function isSecondUpdate(): () => boolean {
  let count = 0;
  return () => ++count > 1;
}
