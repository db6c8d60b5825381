// A node that really runs short: a pod that eats memory is evicted and the others stay. The whole kubelet, on a threshold set
// from what this machine has free right now, so that nothing else may take memory meanwhile.
// runs: alone
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { KubeEvent, Node } from '../../src/core/node.ts';
import type { Pod, PodSpec } from '../../src/core/pod.ts';
import { detectCgroups } from '../../src/host/cgroups/layout.ts';
import { CgroupStatisticsReader } from '../../src/host/cgroups/statistics-reader.ts';
import { EVENTS, NODES, PODS } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { CgroupReadings } from '../../src/stats/cgroup-readings.ts';
import { CpuRates } from '../../src/stats/cpu-rates.ts';
import { HostReadings } from '../../src/stats/host-readings.ts';
import { memoryFigures } from '../../src/stats/summary.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';

const namespace = 'default';
const never = new AbortController().signal;
const MI = 2 ** 20;
/** What the greedy pod takes, of what is free at the start; the threshold leaves room for what neighbours do meanwhile. */
const EATEN = 0.2;
const ROOM = 0.13;

async function availableBytes(): Promise<number> {
  const host = new HostReadings(systemClock);
  const readings = new CgroupReadings(new CgroupStatisticsReader(await detectCgroups()), new CpuRates(), systemClock);
  const { memoryBytes, swapBytes } = await host.machine();
  const root = await readings.readRoot({ memoryBytes, swapBytes, swapUsedBytes: 0 }, 'usage', never);
  assert.ok(root !== undefined);
  return memoryFigures(root, false)?.availableBytes ?? 0;
}

describe('a node that runs short', () => {
  let node: TestNode;
  let thresholdMi: number;
  let eatenMi: number;
  before(async () => {
    const freeMi = (await availableBytes()) / MI;
    eatenMi = Math.floor(freeMi * EATEN);
    thresholdMi = Math.floor(freeMi * (1 - ROOM));
    const hard = `{memory.available: ${thresholdMi}Mi, nodefs.available: 1%, imagefs.available: 1%}`;
    node = await startNode({
      config: `evictionPressureTransitionPeriod: 12s\nvolumeStatsAggPeriod: 1s\nkernelMemcgNotification: true`,
      // The harness writes its own thresholds into the file; flags win.
      flags: [`--eviction-hard=${hard.slice(1, -1).replaceAll(': ', '<').replaceAll(', ', ',')}`],
    });
  });
  after(() => node?.stop());

  const get = (name: string): Promise<Pod> => node.client.get(PODS, { namespace, name }, never);
  const create = (name: string, script: string, spec: Partial<PodSpec> = {}): Promise<Pod> => {
    const container = { name: 'c', image: BUSYBOX_IMAGE, imagePullPolicy: 'Never', command: ['sh', '-c', script] };
    const containers = [{ ...container, ...spec.containers?.[0] }];
    const usual = { nodeName: NODE_NAME, terminationGracePeriodSeconds: 0, automountServiceAccountToken: false };
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: { ...usual, ...spec, containers },
    };
    return until(`${name} may be made`, () => node.client.create<Pod>(PODS, { namespace }, pod as Pod, never));
  };
  const comesTo = (name: string, phase: string, withinMs?: number): Promise<Pod> =>
    until(
      `${name} is ${phase}`,
      async () => {
        const pod = await get(name);
        if (pod.status?.phase !== phase) throw new Error(JSON.stringify(pod.status));
        return pod;
      },
      withinMs,
    );
  const events = async (reason: string): Promise<readonly KubeEvent[]> =>
    (await node.client.list(EVENTS, { namespace, query: { fieldSelector: `reason=${reason}` } }, never)).items;
  const pressure = async (type: string): Promise<string | undefined> => {
    const seen: Node = await node.client.get(NODES, { name: NODE_NAME }, never);
    return seen.status?.conditions?.find((c) => c.type === type)?.status;
  };
  const containerIds = async (names: readonly string[]): Promise<unknown> =>
    Promise.all(names.map(async (n) => (await get(n)).status?.containerStatuses?.[0]?.containerID));

  it('evicts the pod that eats memory, with reason, message, condition and event; the others stay', async () => {
    const container = { name: 'c', image: BUSYBOX_IMAGE, imagePullPolicy: 'Never', command: ['sleep', '1000'] };
    writeFileSync(
      join(node.manifests, 'static.json'),
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'static' },
        spec: { containers: [container] },
      }),
    );
    await create('modest', 'sleep 1000');
    await create('asked', 'sleep 1000', { containers: [{ name: 'c', resources: { requests: { memory: '64Mi' } } }] });
    const others = ['modest', 'asked', `static-${NODE_NAME}`];
    for (const name of others) await comesTo(name, 'Running');
    const before = await containerIds(others);
    const { metadata } = await create('greedy', `dd if=/dev/zero of=/m/data bs=1M count=${eatenMi}; sleep 1000`, {
      volumes: [{ name: 'm', emptyDir: { medium: 'Memory' } }],
      containers: [
        {
          name: 'c',
          resources: { requests: { memory: '16Mi' } },
          volumeMounts: [{ name: 'm', mountPath: '/m' }],
        },
      ],
    });
    const { status } = await comesTo('greedy', 'Failed');
    const message = new RegExp(
      `^The node was low on resource: memory\\. Threshold quantity: ${thresholdMi}Mi, available: \\d+(Ki|Mi)?\\. ` +
        'Container c was using \\d+(Ki|Mi)?, request is 16Mi, has larger consumption of memory\\. $',
    );
    assert.equal(status?.reason, 'Evicted');
    assert.match(status.message ?? '', message);
    const condition = status.conditions?.find((c) => c.type === 'DisruptionTarget');
    assert.deepEqual(
      [condition?.status, condition?.reason, condition?.message],
      ['True', 'TerminationByKubelet', status.message],
    );
    const [event] = await until('the event is there', async () => {
      const reported = (await events('Evicted')).filter((e) => e.involvedObject.uid === metadata.uid);
      return reported.length > 0 && reported;
    });
    assert.equal(event?.message, status.message);
    assert.equal(event?.metadata.annotations?.['starved_resource'], 'memory');
    assert.equal(event.metadata.annotations['offending_containers'], 'c');
    assert.match(event.metadata.annotations['offending_containers_usage'] ?? '', /^\d+(Ki|Mi)?$/);
    assert.ok((await events('EvictionThresholdMet')).some((e) => e.message === 'Attempting to reclaim memory'));
    for (const name of others) assert.equal((await get(name)).status?.phase, 'Running', name);
    assert.deepEqual(await containerIds(others), before, 'nothing of the others was restarted');
  });

  it('is told by the kernel that memory crossed the threshold, on cgroup v1', async () => {
    const isTold = async (): Promise<boolean> => /memory use crossed a threshold/.test(await node.log());
    // Up when the pod took it, down when it was gone.
    if ((await detectCgroups()).version === 1) await until('the kernel told', isTold);
    else assert.equal(await isTold(), false, 'v2 has no such sign, and upstream does nothing there either');
  });

  it('shows the pressure for a while and takes no best effort pods, then takes them again', async () => {
    await untilSeen(
      'the pressure is told',
      () => pressure('MemoryPressure'),
      (seen) => seen === 'True',
    );
    await create('refused', 'sleep 1000');
    const { status } = await comesTo('refused', 'Failed');
    assert.equal(status?.reason, 'Evicted');
    assert.equal(status.message, 'Pod was rejected: The node had condition: [MemoryPressure]. ');
    await create('burstable', 'sleep 1000', {
      containers: [{ name: 'c', resources: { requests: { memory: '1Mi' } } }],
    });
    await comesTo('burstable', 'Running');
    await untilSeen(
      'the pressure is over',
      () => pressure('MemoryPressure'),
      (seen) => seen === 'False',
    );
    await create('later', 'sleep 1000');
    await comesTo('later', 'Running');
  });
});
