// Devices as a user meets them, through the whole kubelet on a real runtime: a plugin in a process of its own, a pod that
// uses its devices, and restarts of everything in between.
// runs: gate
// shows: device plugins, dynamic resource allocation (DRA)
// shows: plugin registration
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import { NODES, PODS } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import { PodResourcesLister } from '../../src/server/gen/pod-resources.ts';
import { EventType, Pods } from '../../src/server/gen/pods-api.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';

const { signal } = new AbortController();
const R = 'example.com/card';
const PLUGIN = join(import.meta.dirname, '..', 'fakes', 'device-plugin-main.ts');
const SCRIPT =
  'echo cards=$CARDS $(cat /opt/card/info) $(test -c /dev/card && echo device); trap exit TERM; while :; do sleep 0.1; done';

let node: TestNode;
let plugin: ChildProcess | undefined;

const root = (): string => join(node.dir, 'kubelet');
const startPlugin = (...ids: readonly string[]): void => {
  plugin = spawn(process.execPath, [PLUGIN, join(root(), 'device-plugins'), R, ...ids], { stdio: 'inherit' });
};
const stopPlugin = async (how: NodeJS.Signals): Promise<void> => {
  const child = plugin;
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill(how);
  await gone;
};

before(async () => {
  node = await startNode({ flags: ['--feature-gates', 'PodsAPI=true'] });
  await until('plugins can register', () => existsSync(join(root(), 'device-plugins', 'kubelet.sock')));
  startPlugin('a', 'b');
});
after(async () => {
  await stopPlugin('SIGKILL');
  await node?.stop();
});

const manifest = (name: string, count: number): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      nodeName: NODE_NAME,
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      containers: [
        {
          name: 'c',
          image: BUSYBOX_IMAGE,
          imagePullPolicy: 'Never',
          command: ['sh', '-c', SCRIPT],
          resources: { limits: { [R]: String(count) } },
        },
      ],
    },
  }) as unknown as Pod;
const create = (pod: Pod): Promise<unknown> =>
  until('the pod may be made', () => node.client.create(PODS, { namespace: 'default' }, pod, signal).then(() => true));
const podNow = (name: string): Promise<Pod> => node.client.get(PODS, { namespace: 'default', name }, signal);
const runs = (name: string, restarts = 0): Promise<Pod> =>
  until(`${name} runs`, async () => {
    const pod = await podNow(name);
    const status = pod.status?.containerStatuses?.[0];
    return status?.state.running !== undefined && status.restartCount === restarts && pod;
  });
const shown = async (what: 'capacity' | 'allocatable'): Promise<string | undefined> =>
  (await node.client.get(NODES, { name: NODE_NAME }, signal)).status?.[what]?.[R];
const logOf = async (pod: Pod, restart: number): Promise<string> => {
  const folder = join(node.dir, 'pod-logs', `default_${pod.metadata.name}_${pod.metadata.uid ?? ''}`, 'c');
  return until('the container has said something', () => {
    const path = join(folder, `${restart}.log`);
    return existsSync(path) && readFileSync(path, 'utf8').includes('cards=') && readFileSync(path, 'utf8');
  });
};
async function listed(): Promise<readonly string[]> {
  const channel = new GrpcChannel(systemClock, {
    target: { socketPath: join(root(), 'pod-resources', 'kubelet.sock') },
  });
  try {
    const { podResources } = await channel.unary(PodResourcesLister.list, {}, { signal, deadlineMs: 5000 });
    return podResources.flatMap((p) =>
      p.containers.flatMap((c) => c.devices.map((d) => `${p.name}/${c.name} ${d.resourceName} ${d.deviceIds.join()}`)),
    );
  } finally {
    channel.close();
  }
}

test('a pod gets its device, and keeps it over restarts of container, kubelet and plugin', async () => {
  await untilSeen(
    'the node has two',
    () => shown('allocatable'),
    (seen) => seen === '2',
  );
  assert.equal(await shown('capacity'), '2');
  await create(manifest('user', 1));
  const pod = await runs('user');
  assert.match(await logOf(pod, 0), /cards=a made for a device/);
  assert.deepEqual(pod.status?.containerStatuses?.[0]?.allocatedResourcesStatus, [
    { name: R, resources: [{ resourceID: 'a', health: 'Healthy' }] },
  ]);
  assert.deepEqual(await listed(), [`user/c ${R} a`]);

  await node.kubelet.kill('SIGKILL');
  await stopPlugin('SIGKILL');
  await node.kubelet.start(node.healthzPort);
  await untilSeen(
    'the node has none without the plugin',
    () => shown('capacity'),
    (seen) => seen === '0',
  );
  assert.equal((await runs('user')).metadata.uid, pod.metadata.uid, 'the pod goes on');
  await untilSeen(
    'the kubelet knows its device again',
    async () => (await listed()).join(),
    (seen) => seen === `user/c ${R} a`,
  );
  startPlugin('a', 'b');
  await untilSeen(
    'the plugin is back',
    () => shown('allocatable'),
    (seen) => seen === '2',
  );

  const id = (pod.status?.containerStatuses?.[0]?.containerID ?? '').split('://')[1] ?? '';
  await node.containerd.runtime.stopContainer({ containerId: id, timeout: 0 }, signal);
  assert.match(await logOf(await runs('user', 1), 1), /cards=a made for a device/);

  await create(manifest('second', 1));
  assert.match(await logOf(await runs('second'), 0), /cards=b /);

  await create(manifest('third', 1));
  const rejected = await until('there is none left', async () => {
    const now = await podNow('third');
    return now.status?.phase === 'Failed' && now;
  });
  assert.equal(rejected.status?.reason, 'UnexpectedAdmissionError');
  assert.equal(
    rejected.status.message,
    `Pod was rejected: Allocate failed due to requested number of devices unavailable for ${R}. Requested: 1, Available: 0, which is unexpected`,
  );

  await stopPlugin('SIGTERM');
  await untilSeen(
    'nothing can be had of a plugin that left',
    () => shown('allocatable'),
    (seen) => seen === '0',
  );
  assert.equal(await shown('capacity'), '2');
  startPlugin('a');
  await untilSeen(
    'it is back with one',
    () => shown('capacity'),
    (seen) => seen === '1',
  );
  assert.equal((await podNow('second')).status?.phase, 'Running');
  assert.deepEqual([...(await listed())].sort(), [`second/c ${R} b`, `user/c ${R} a`]);
});

test('agents on the node can watch its pods', async () => {
  const { metadata } = await podNow('user');
  const channel = new GrpcChannel(systemClock, { target: { socketPath: join(root(), 'pods-api', 'pods-api.sock') } });
  const stop = new AbortController();
  const seen: string[] = [];
  const watching = channel.serverStream(Pods.watchPods, {}, { signal: stop.signal }, ({ type, pod }) => {
    const text = Buffer.from(pod).toString('latin1');
    if (text.includes(metadata.uid ?? '')) seen.push(`${type}${text.includes('Running') ? ' Running' : ''}`);
  });
  try {
    await untilSeen(
      'the pod is told',
      () => seen,
      (got) => got.length > 0,
    );
    await node.client.delete(PODS, { namespace: 'default', name: 'user' }, {}, signal);
    await untilSeen(
      'its end is told',
      () => seen,
      (got) => got.includes(String(EventType.DELETED)),
    );
  } finally {
    stop.abort();
    await watching.catch(() => undefined);
    channel.close();
  }
  assert.equal(seen[0], `${EventType.ADDED} Running`);
  assert.ok(
    seen.slice(1, -1).every((event) => event.startsWith(String(EventType.MODIFIED))),
    seen.join(),
  );
  assert.equal(seen.at(-1), String(EventType.DELETED));
});
