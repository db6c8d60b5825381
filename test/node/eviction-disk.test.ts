// A disk that really runs full: kubelet, volumes, images and containers share a small loop-mounted filesystem. What nobody
// uses goes first, then the pod that took the space; the others stay, and the node recovers.
import assert from 'node:assert/strict';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { KubeEvent } from '../../src/core/node.ts';
import type { Pod, PodSpec } from '../../src/core/pod.ts';
import { EVENTS, NODES, PODS } from '../../src/kube/resources.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';

const namespace = 'default';
const never = new AbortController().signal;
const MI = 2 ** 20;
const THRESHOLD_MI = 120;
const UNUSED_MI = 12;
const UNUSED = 'localhost/unused:v1';

describe('a node whose disk runs full', { skip: process.getuid?.() !== 0 && 'needs root' }, () => {
  let node: TestNode;
  before(async () => {
    node = await startNode({
      diskMiB: 300,
      oneDisk: true,
      config: 'evictionPressureTransitionPeriod: 2s\nvolumeStatsAggPeriod: 1s\nimageMinimumGCAge: 1s',
      flags: [`--eviction-hard=nodefs.available<${THRESHOLD_MI}Mi`],
      // Before the kubelet starts: an image it sees for the first time while it looks for space is too young to go.
      prepare: ({ containerd }) => containerd.importImage({ ref: UNUSED, extraBytes: UNUSED_MI * MI }),
    });
  });
  after(() => node?.stop());

  const create = async (name: string, script: string, container: object = {}): Promise<Pod> => {
    const usual = { name: 'c', image: BUSYBOX_IMAGE, imagePullPolicy: 'Never', command: ['sh', '-c', script] };
    const mounted = { volumeMounts: [{ name: 'v', mountPath: '/v' }] };
    const spec = {
      nodeName: NODE_NAME,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      volumes: [{ name: 'v', emptyDir: {} }],
      containers: [{ ...usual, ...mounted, ...container }],
    } as unknown as PodSpec;
    const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec };
    await until(`${name} may be made`, () => node.client.create<Pod>(PODS, { namespace }, pod, never));
    return comesTo(name, 'Running');
  };
  const comesTo = (name: string, phase: string): Promise<Pod> =>
    until(`${name} is ${phase}`, async () => {
      const pod = await node.client.get(PODS, { namespace, name }, never);
      return pod.status?.phase === phase && pod;
    });
  const events = async (reason: string): Promise<readonly KubeEvent[]> =>
    (await node.client.list(EVENTS, { namespace, query: { fieldSelector: `reason=${reason}` } }, never)).items;
  const availableMi = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(join(node.containerd.root, 'lib'));
    return (bavail * bsize) / MI;
  };
  const hasImage = async (): Promise<boolean> =>
    (await node.containerd.images.listImages({}, never)).images.some((i) => i.repoTags.includes(UNUSED));

  it('takes away unused images, then the worst offender, says so, and recovers', async () => {
    const requests = { 'ephemeral-storage': '64Mi' };
    await create('asked', 'dd if=/dev/zero of=/v/data bs=1M count=30; sleep 1000', { resources: { requests } });
    await create('modest', 'dd if=/dev/zero of=/v/data bs=1M count=5; sleep 1000');
    const eaten = Math.floor((await availableMi()) - THRESHOLD_MI + 3 * UNUSED_MI);
    assert.ok(eaten > 20, `only ${eaten} MiB to eat`);
    assert.equal(await hasImage(), true);
    const { metadata } = await create('greedy', `dd if=/dev/zero of=/v/data bs=1M count=${eaten}; sleep 1000`);

    const { status } = await comesTo('greedy', 'Failed');
    assert.equal(status?.reason, 'Evicted');
    assert.match(
      status.message ?? '',
      new RegExp(
        `^The node was low on resource: ephemeral-storage\\. Threshold quantity: ${THRESHOLD_MI}Mi, available: \\d+(Ki|Mi)\\. ` +
          'Container c was using \\d+(Ki|Mi), request is 0, has larger consumption of ephemeral-storage\\. $',
      ),
    );
    const condition = status.conditions?.find((c) => c.type === 'DisruptionTarget');
    assert.deepEqual([condition?.status, condition?.reason], ['True', 'TerminationByKubelet']);
    assert.equal(await hasImage(), false, 'unused images go before pods do');
    assert.ok(
      (await events('EvictionThresholdMet')).some((e) => e.message === 'Attempting to reclaim ephemeral-storage'),
    );
    const evicted = await until('the event is there', async () => {
      const reported = (await events('Evicted')).find((e) => e.involvedObject.uid === metadata.uid);
      return reported ?? false;
    });
    assert.equal(evicted.message, status.message);
    assert.equal(evicted.metadata.annotations?.['starved_resource'], 'ephemeral-storage');

    await untilSeen(
      'the pressure was told',
      () => events('NodeHasDiskPressure'),
      (seen) => seen.length > 0,
    );
    await until('the pressure is over', async () => {
      const { status: seen } = await node.client.get(NODES, { name: NODE_NAME }, never);
      const pressure = seen?.conditions?.find((c) => c.type === 'DiskPressure');
      return pressure?.status === 'False' && pressure.reason === 'KubeletHasNoDiskPressure';
    });
    assert.ok((await availableMi()) > THRESHOLD_MI);
    for (const name of ['asked', 'modest']) {
      const { status: other } = await node.client.get(PODS, { namespace, name }, never);
      assert.deepEqual([other?.phase, other?.containerStatuses?.[0]?.restartCount], ['Running', 0], name);
    }
  });
});
