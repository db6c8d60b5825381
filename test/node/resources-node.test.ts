// Limits as a user meets them, through the whole kubelet on a real runtime: processor time, processes, memory.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import { detectCgroups } from '../../src/host/cgroups/layout.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { EVENTS, PODS } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';

const { signal } = new AbortController();
const NAMESPACE = 'default';
type Name = 'hog' | 'bomb' | 'oom';

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

const PODS_MADE: Readonly<Record<Name, Pod>> = {
  hog: manifest('hog', 'while :; do :; done', { cpu: '100m', memory: '32Mi' }),
  bomb: manifest('bomb', BOMB, { cpu: '200m', memory: '64Mi' }),
  oom: manifest('oom', 'x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done', { cpu: '500m', memory: '16Mi' }),
};

let node: TestNode;
before(async () => {
  node = await startNode({ config: 'podPidsLimit: 20' });
  for (const pod of Object.values(PODS_MADE))
    await until(`${pod.metadata.name} may be made`, () =>
      node.client.create(PODS, { namespace: NAMESPACE }, pod, signal).then(() => true),
    );
});
after(() => node?.stop());

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
  await systemClock.sleep(500, signal);
  const [start, from] = [performance.now(), await usedMs()];
  await systemClock.sleep(3000, signal);
  const share = ((await usedMs()) - from) / (performance.now() - start);
  assert.ok(share > 0.07 && share < 0.12, `used ${share.toFixed(3)} of a processor`);
});

test('a fork bomb stays within podPidsLimit', async () => {
  const cgroup = podCgroup(await comesTo('bomb', 'Running'));
  await systemClock.sleep(1000, signal);
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const { length } = await cgroups.pids(cgroup, signal);
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
