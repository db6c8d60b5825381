// Local storage limits on a real runtime: a pod that outgrows the size limit of a volume, or its own limit of ephemeral storage,
// is evicted with upstream's words; the pod beside it stays.
// runs: gate
// shows: eviction under pressure, local storage limits, preemption for critical pods
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KubeEvent } from '../../src/core/node.ts';
import type { Container, Pod, PodSpec } from '../../src/core/pod.ts';
import { EVENTS, PODS } from '../../src/kube/resources.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';

const namespace = 'default';
const never = new AbortController().signal;
const WRITES = 'dd if=/dev/zero of=/v/data bs=1M count=8; sleep 1000';

describe('local storage limits', () => {
  let node: TestNode;
  before(async () => {
    node = await startNode({ config: 'volumeStatsAggPeriod: 1s' });
  });
  after(() => node?.stop());

  const create = async (name: string, spec: Partial<PodSpec>, container: Partial<Container>): Promise<void> => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: {
        nodeName: NODE_NAME,
        terminationGracePeriodSeconds: 0,
        automountServiceAccountToken: false,
        ...spec,
        containers: [
          {
            name: 'c',
            image: BUSYBOX_IMAGE,
            imagePullPolicy: 'Never',
            command: ['sh', '-c', WRITES],
            volumeMounts: [{ name: 'v', mountPath: '/v' }],
            ...container,
          },
        ],
      },
    };
    await until(`${name} may be made`, () =>
      node.client.create<Pod>(PODS, { namespace }, pod as unknown as Pod, never),
    );
  };
  const comesTo = (name: string, phase: string): Promise<Pod> =>
    until(`${name} is ${phase}`, async () => {
      const pod = await node.client.get<Pod>(PODS, { namespace, name }, never);
      if (pod.status?.phase !== phase) throw new Error(JSON.stringify(pod.status));
      return pod;
    });

  it('evict the pod that outgrew them, and no other', async () => {
    await create('modest', { volumes: [{ name: 'v', emptyDir: { sizeLimit: '64Mi' } }] }, {});
    await create('volume', { volumes: [{ name: 'v', emptyDir: { sizeLimit: '4Mi' } }] }, {});
    await create(
      'whole',
      { volumes: [{ name: 'v', emptyDir: {} }] },
      { resources: { limits: { 'ephemeral-storage': '4Mi' } } },
    );
    for (const [name, message] of [
      ['volume', 'Usage of EmptyDir volume "v" exceeds the limit "4Mi". '],
      ['whole', 'Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. '],
    ] as const) {
      const { status, metadata } = await comesTo(name, 'Failed');
      assert.deepEqual([status?.reason, status?.message], ['Evicted', message]);
      assert.ok(!status?.conditions?.some(({ type }) => type === 'DisruptionTarget'));
      await until(`the event of ${name}`, async () => {
        const query = { fieldSelector: 'reason=Evicted' };
        const { items } = await node.client.list<KubeEvent>(EVENTS, { namespace, query }, never);
        return items.some((event) => event.involvedObject.uid === metadata.uid && event.message === message);
      });
    }
    const { status } = await comesTo('modest', 'Running');
    assert.equal(status?.containerStatuses?.[0]?.restartCount, 0);
  });
});
