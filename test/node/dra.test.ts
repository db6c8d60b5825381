// Dynamic resource allocation through the whole kubelet on a real runtime: a driver in a process of its own, a pod whose
// claim it prepares, its health in the pod's status, and what is left when pod and driver are gone.
// runs: gate
// shows: device plugins, dynamic resource allocation (DRA)
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import { PODS, RESOURCE_CLAIMS, type ResourceClaim } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import { PodResourcesLister } from '../../src/server/gen/pod-resources.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';

const { signal } = new AbortController();
const DRIVER = 'gpu.example.com';
const DRIVER_MAIN = join(import.meta.dirname, '..', 'fakes', 'dra-driver-main.ts');
/** Where containerd looks for the descriptions of devices. */
const CDI_DIR = '/var/run/cdi';
const CDI_FILE = join(CDI_DIR, `kubelet-ts-test-${process.pid}.json`);
const NAMESPACE = 'default';

let node: TestNode;
let driver: ChildProcess | undefined;
const madeCdiDir = !existsSync(CDI_DIR);

const root = (): string => join(node.dir, 'kubelet');
const startDriver = (): void => {
  const args = [DRIVER_MAIN, join(root(), 'plugins', DRIVER), join(root(), 'plugins_registry'), DRIVER, CDI_FILE];
  driver = spawn(process.execPath, args, { stdio: 'inherit' });
};
const stopDriver = async (how: NodeJS.Signals): Promise<void> => {
  const child = driver;
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill(how);
  await gone;
};

before(async () => {
  mkdirSync(CDI_DIR, { recursive: true });
  node = await startNode();
  await until('plugins can register', () => existsSync(join(root(), 'plugins_registry')));
  startDriver();
});
after(async () => {
  await stopDriver('SIGKILL');
  rmSync(CDI_FILE, { force: true });
  if (madeCdiDir && readdirSync(CDI_DIR).length === 0) rmdirSync(CDI_DIR);
  await node?.stop();
});

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'user', namespace: NAMESPACE },
  spec: {
    nodeName: NODE_NAME,
    terminationGracePeriodSeconds: 1,
    automountServiceAccountToken: false,
    resourceClaims: [{ name: 'gpu', resourceClaimName: 'one' }],
    containers: [
      {
        name: 'c',
        image: BUSYBOX_IMAGE,
        imagePullPolicy: 'Never',
        command: ['sh', '-c', 'echo claim=$CLAIM_one; trap exit TERM; while :; do sleep 0.1; done'],
        resources: { claims: [{ name: 'gpu' }] },
      },
    ],
  },
} as unknown as Pod;
const where = { namespace: NAMESPACE, name: 'one' };
const podNow = (): Promise<Pod> => node.client.get(PODS, { namespace: NAMESPACE, name: 'user' }, signal);

/** What the scheduler does: gives the claim a device and says who may use it. */
async function allocate(uid: string): Promise<void> {
  const claim = await node.client.get(RESOURCE_CLAIMS, where, signal);
  const results = [{ request: 'gpu', driver: DRIVER, pool: 'pool', device: 'one' }];
  const status = {
    allocation: { devices: { results } },
    reservedFor: [{ resource: 'pods', name: 'user', uid }],
  };
  await node.client.replace(RESOURCE_CLAIMS, { ...where, subresource: 'status' }, { ...claim, status }, signal);
}

const state = (): string => readFileSync(join(root(), 'dra_manager_state'), 'utf8');

async function claimsListed(): Promise<readonly string[]> {
  const channel = new GrpcChannel(systemClock, {
    target: { socketPath: join(root(), 'pod-resources', 'kubelet.sock') },
  });
  try {
    const { podResources } = await channel.unary(PodResourcesLister.list, {}, { signal, deadlineMs: 5000 });
    return podResources.flatMap((p) =>
      p.containers.flatMap((c) =>
        c.dynamicResources.flatMap((d) =>
          d.claimResources.map((r) => `${p.name} ${d.claimName} ${r.driverName} ${r.deviceName}`),
        ),
      ),
    );
  } finally {
    channel.close();
  }
}

test('a pod gets the devices of its claim and gives them back', async () => {
  const claim = {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: where,
  } as unknown as ResourceClaim;
  const spec = { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpus' } }] } };
  await node.client.create(RESOURCE_CLAIMS, { namespace: NAMESPACE }, { ...claim, spec }, signal);
  await until('the pod may be made', () =>
    node.client.create(PODS, { namespace: NAMESPACE }, pod, signal).then(() => true),
  );
  await untilSeen(
    'it waits for its claim',
    () => node.log(),
    (text) => /is not allowed to use ResourceClaim one/.test(text),
  );
  const { metadata } = await podNow();
  await allocate(metadata.uid ?? '');
  const running = await until('the pod runs', async () => {
    const now = await podNow();
    return now.status?.containerStatuses?.[0]?.state.running !== undefined && now;
  });
  const log = join(node.dir, 'pod-logs', `${NAMESPACE}_user_${running.metadata.uid ?? ''}`, 'c', '0.log');
  await until(
    'the container sees its device',
    () => existsSync(log) && readFileSync(log, 'utf8').includes('claim=yes'),
  );
  assert.match(state(), /ClaimName\\":\\"one/);
  assert.deepEqual(await claimsListed(), [`user one ${DRIVER} one`]);

  driver?.kill('SIGUSR1');
  await until('its bad health is told', async () => {
    const health = (await podNow()).status?.containerStatuses?.[0]?.allocatedResourcesStatus?.[0];
    return (
      health?.name === 'claim:gpu' &&
      health.resources?.[0]?.health === 'Unhealthy' &&
      health.resources[0].message === 'too hot'
    );
  });

  await node.kubelet.kill('SIGKILL');
  await node.kubelet.start(node.healthzPort);
  await untilSeen('the kubelet knows the claim again', claimsListed, (seen) => seen.length === 1);
  assert.equal((await podNow()).status?.containerStatuses?.[0]?.restartCount, 0);

  await node.client.delete(PODS, { namespace: NAMESPACE, name: 'user' }, {}, signal);
  await until('the pod is gone', () =>
    podNow().then(
      () => false,
      () => true,
    ),
  );
  assert.match(state(), /ClaimInfoStateList\\":null/);
  assert.deepEqual(await node.refusals(), []);
});
