// Limits as a user meets them, through the whole kubelet on a real runtime: processor time, processes, memory.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ContainerState, type Container } from '../../src/cri/gen/cri.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { detectCgroups } from '../../src/host/cgroups/layout.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { eventually } from '../harness/containerd.ts';
import { startNode, type TestNode } from '../harness/node.ts';

const { signal } = new AbortController();
const UIDS = {
  hog: 'aaaaaaaa-0000-4000-8000-000000000001',
  bomb: 'aaaaaaaa-0000-4000-8000-000000000002',
  oom: 'aaaaaaaa-0000-4000-8000-000000000003',
};

/** The inner shell gives up when it cannot fork; what it started stays. */
const BOMB = "sh -c 'i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done'; exec sleep 1000";

const manifest = (name: keyof typeof UIDS, script: string, limits: object): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, uid: UIDS[name] },
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'c',
          image: 'localhost/busybox:latest',
          imagePullPolicy: 'Never',
          command: ['sh', '-c', script],
          resources: { limits },
        },
      ],
    },
  });

let node: TestNode;
before(async () => {
  node = await startNode({ cluster: false, config: 'podPidsLimit: 20' });
  const pods = {
    hog: manifest('hog', 'while :; do :; done', { cpu: '100m', memory: '32Mi' }),
    bomb: manifest('bomb', BOMB, {
      cpu: '200m',
      memory: '64Mi',
    }),
    oom: manifest('oom', 'x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done', { cpu: '500m', memory: '16Mi' }),
  };
  for (const [name, text] of Object.entries(pods)) writeFileSync(join(node.manifests, `${name}.json`), text);
});
after(() => node.stop());

const containerOf = async (name: keyof typeof UIDS): Promise<Container | undefined> => {
  const filter = { labelSelector: { 'io.kubernetes.pod.uid': UIDS[name] } };
  return (await node.containerd.runtime.listContainers({ filter }, signal)).containers[0];
};
const running = (name: keyof typeof UIDS): Promise<void> =>
  eventually(`${name} runs`, 20_000, async () => (await containerOf(name))?.state === ContainerState.CONTAINER_RUNNING);
const podCgroup = (name: keyof typeof UIDS): string => `${node.cgroupRoot}/kubepods/pod${UIDS[name]}`;

test('a processor hog in a 100m pod uses 100m', async () => {
  await running('hog');
  const layout = await detectCgroups();
  const usedMs = async (): Promise<number> => {
    if (layout.version === 2) {
      const stat = await readFile(join(layout.mountPoint, podCgroup('hog'), 'cpu.stat'), 'utf8');
      return Number(/usage_usec (\d+)/.exec(stat)?.[1]) / 1e3;
    }
    const mount = layout.hierarchies.find((h) => h.controllers.includes('cpuacct'))?.mountPoint ?? '';
    return Number(await readFile(join(mount, podCgroup('hog'), 'cpuacct.usage'), 'utf8')) / 1e6;
  };
  await systemClock.sleep(500, signal);
  const [start, from] = [performance.now(), await usedMs()];
  await systemClock.sleep(3000, signal);
  const share = ((await usedMs()) - from) / (performance.now() - start);
  assert.ok(share > 0.07 && share < 0.12, `used ${share.toFixed(3)} of a processor`);
});

test('a fork bomb stays within podPidsLimit', async () => {
  await running('bomb');
  await systemClock.sleep(1000, signal);
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const { length } = await cgroups.pids(podCgroup('bomb'), signal);
  assert.ok(length > 10 && length <= 20, `${length} processes`);
});

test('a container over its memory limit is killed and says so', async () => {
  await eventually(
    'oom ended',
    20_000,
    async () => (await containerOf('oom'))?.state === ContainerState.CONTAINER_EXITED,
  );
  const { status } = await node.containerd.runtime.containerStatus(
    { containerId: (await containerOf('oom'))?.id ?? '', verbose: false },
    signal,
  );
  assert.equal(status?.reason, 'OOMKilled');
  assert.equal(status.exitCode, 137);
});
