// What a pod may ask of the runtime beside running: users of its own, images as volumes, names in its hosts file, shared
// processes, signals. On containerd 2.1 with a runc that can map mounts, through a whole kubelet.
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { KubeEvent } from '../../src/core/node.ts';
import type { Container, Pod, PodSpec } from '../../src/core/pod.ts';
import { Signal, type CreateContainerRequest, type Mount } from '../../src/cri/gen/cri.ts';
import { EVENTS, PODS } from '../../src/kube/resources.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { findIdmapRunc, missingContainerds } from '../harness/containerd-binaries.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';

const never = new AbortController().signal;
const namespace = 'default';
const DATA_IMAGE = 'localhost/data:v1';
const IDS = 65_536;
const SERVE = ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done'];

let node: TestNode;

const container = (name: string, more: Partial<Container> = {}): Container => ({
  name,
  image: BUSYBOX_IMAGE,
  imagePullPolicy: 'Never',
  command: SERVE,
  ...more,
});
const read = (name: string): Promise<Pod> => node.client.get(PODS, { namespace, name }, never);
const eventsOf = async (name: string): Promise<readonly KubeEvent[]> =>
  (await node.client.list(EVENTS, { namespace }, never)).items.filter((e) => e.involvedObject?.name === name);
const podDir = (pod: Pod): string => join(node.dir, 'kubelet', 'pods', pod.metadata.uid ?? '');

async function create(name: string, spec: PodSpec): Promise<Pod> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: { nodeName: NODE_NAME, terminationGracePeriodSeconds: 3, automountServiceAccountToken: false, ...spec },
  };
  return node.client.create<Pod>(PODS, { namespace }, pod, never);
}

async function running(name: string, spec: PodSpec): Promise<Pod> {
  await create(name, spec);
  try {
    return await until(`${name} is ready`, async () => {
      const pod = await read(name);
      return pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true ? pod : undefined;
    });
  } catch (err) {
    const why = (await eventsOf(name)).map((e) => `${e.reason}: ${e.message}`).join('\n');
    throw new Error(`${String(err)}\n${why}`, { cause: err });
  }
}

const remove = (name: string): Promise<unknown> => node.client.delete(PODS, { namespace, name }, {}, never);
const gone = (name: string): Promise<boolean> =>
  until(`${name} is gone`, () =>
    read(name).then(
      () => false,
      () => true,
    ),
  );

const idOf = (pod: Pod, name: string): string =>
  pod.status?.containerStatuses?.find((c) => c.name === name)?.containerID?.replace(/^.*:\/\//, '') ?? '';

async function exec(pod: Pod, name: string, script: string): Promise<string> {
  const request = { containerId: idOf(pod, name), cmd: ['sh', '-c', script], timeout: 10 };
  const { stdout, stderr, exitCode } = await node.containerd.runtime.execSync(request, never);
  assert.equal(exitCode, 0, Buffer.from(stderr).toString());
  return Buffer.from(stdout).toString().trim();
}

/** The id of a container's first process on the host. */
async function pidOf(pod: Pod, name: string): Promise<number> {
  const { info } = await node.containerd.runtime.containerStatus(
    { containerId: idOf(pod, name), verbose: true },
    never,
  );
  return (JSON.parse(info['info'] ?? '{}') as { pid: number }).pid;
}

const skip = await findIdmapRunc().then(
  () => false as const,
  (err: unknown) => `no runc that can map mounts: ${String(err)}`,
);

describe('features of pods on containerd 2.1', { skip }, () => {
  before(async () => {
    node = await startNode({
      containerd: '2.1',
      idmapRunc: true,
      flags: ['--feature-gates', 'ContainerStopSignals=true'],
    });
    await node.containerd.importImage({
      ref: DATA_IMAGE,
      files: { '/top.txt': 'top\n', '/models/small/weights': 'w\n' },
    });
  });
  after(() => node?.stop());

  it('gives a pod users of its own, keeps its files its own, and remembers over a restart', async () => {
    const spec: PodSpec = {
      hostUsers: false,
      volumes: [
        { name: 'scratch', emptyDir: {} },
        { name: 'down', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
      ],
      containers: [
        container('main', {
          volumeMounts: [
            { name: 'scratch', mountPath: '/scratch' },
            { name: 'down', mountPath: '/down' },
          ],
        }),
      ],
    };
    const [one, two] = await Promise.all([running('own-users-1', spec), running('own-users-2', spec)]);
    const map = await exec(one, 'main', 'cat /proc/self/uid_map');
    const [inside, outside, length] = map.split(/\s+/).filter(Boolean).map(Number);
    assert.equal(inside, 0);
    assert.equal(length, IDS);
    assert.ok(outside !== undefined && outside >= IDS && outside % IDS === 0, map);
    assert.notEqual((await exec(two, 'main', 'cat /proc/self/uid_map')).split(/\s+/).filter(Boolean)[1], `${outside}`);
    assert.equal(statSync(`/proc/${await pidOf(one, 'main')}`).uid, outside, 'root inside is nobody outside');
    assert.equal(await exec(one, 'main', 'echo x > /scratch/f; stat -c %u:%g /scratch/f'), '0:0');
    const file = join(podDir(one), 'volumes/kubernetes.io~empty-dir/scratch/f');
    assert.deepEqual([statSync(file).uid, statSync(file).gid], [0, 0], 'owners of volumes are mapped');
    assert.equal(
      await exec(one, 'main', 'cat /down/name; echo; stat -Lc %u /down/name /etc/hosts'),
      'own-users-1\n0\n0',
    );
    const record = { hostId: outside, containerId: 0, length: IDS };
    const recorded = (): unknown => JSON.parse(readFileSync(join(podDir(one), 'userns'), 'utf8'));
    assert.deepEqual(recorded(), { uidMappings: [record], gidMappings: [record] });
    await node.kubelet.kill('SIGKILL');
    await node.kubelet.start(node.healthzPort);
    const three = await running('own-users-3', spec);
    assert.deepEqual(recorded(), { uidMappings: [record], gidMappings: [record] });
    const third = await exec(three, 'main', 'cat /proc/self/uid_map');
    assert.ok(!third.includes(` ${outside} `), 'a range in use is not given again');
    assert.equal(idOf(await read('own-users-1'), 'main'), idOf(one, 'main'), 'it went on');
    await node.containerd.runtime.stopContainer({ containerId: idOf(one, 'main'), timeout: 0 }, never);
    const again = await until('it runs again', async () => {
      const pod = await read('own-users-1');
      return pod.status?.containerStatuses?.[0]?.restartCount === 1 && pod.status.containerStatuses[0].ready
        ? pod
        : undefined;
    });
    assert.equal(await exec(again, 'main', 'cat /proc/self/uid_map /scratch/f'), `${map}\nx`);
    for (const name of ['own-users-1', 'own-users-2', 'own-users-3']) await remove(name);
    for (const name of ['own-users-1', 'own-users-2', 'own-users-3']) await gone(name);
  });

  it('shows all of /proc to those who may have it, with users of their own alone', async () => {
    const open = container('open', { securityContext: { procMount: 'Unmasked' } });
    const pod = await running('proc', { hostUsers: false, containers: [open, container('masked')] });
    const masked = 'mount | grep -c " /proc/\\(kcore\\|keys\\|timer_list\\) " || true';
    assert.equal(await exec(pod, 'open', masked), '0');
    assert.notEqual(await exec(pod, 'masked', masked), '0');
    await remove('proc');
    await gone('proc');
  });

  it('mounts images, whole and in part', async () => {
    const reference = { reference: DATA_IMAGE, pullPolicy: 'IfNotPresent' } as const;
    let asked: readonly Mount[] = [];
    node.cri.observe = ({ call, request }) => {
      if (call === 'CreateContainer')
        asked = (request as CreateContainerRequest).config?.mounts.filter((m) => m.image !== undefined) ?? [];
    };
    const pod = await running('pictures', {
      volumes: [{ name: 'data', image: reference }],
      containers: [
        container('main', {
          volumeMounts: [
            { name: 'data', mountPath: '/data' },
            { name: 'data', mountPath: '/small', subPath: 'models/small' },
          ],
        }),
      ],
    });
    assert.equal(await exec(pod, 'main', 'cat /data/top.txt /data/models/small/weights'), 'top\nw');
    // containerd 2.1 mounts the whole image all the same: what we asked for is all there is to see.
    assert.deepEqual(
      asked.map(({ containerPath, imageSubPath, hostPath }) => [containerPath, imageSubPath, hostPath]),
      [
        ['/data', '', ''],
        ['/small', 'models/small', ''],
      ],
    );
    await assert.rejects(exec(pod, 'main', 'touch /data/x'), /Read-only file system/);
    assert.deepEqual(
      pod.status?.containerStatuses?.[0]?.volumeMounts?.map((m) => m.mountPath),
      ['/data', '/small'],
    );
    await remove('pictures');
    await gone('pictures');
  });

  it('mounts a volume inside one that containers cannot write to', async () => {
    const items = [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }];
    const pod = await running('nested', {
      volumes: [
        { name: 'facts', downwardAPI: { items } },
        { name: 'inner', emptyDir: {} },
      ],
      containers: [
        container('main', {
          volumeMounts: [
            { name: 'inner', mountPath: '/facts/deep/inner' },
            { name: 'facts', mountPath: '/facts' },
          ],
        }),
      ],
    });
    assert.equal(await exec(pod, 'main', 'echo y > /facts/deep/inner/x; cat /facts/name'), 'nested');
    await remove('nested');
    await gone('nested');
  });

  it('keeps a container waiting for an image volume that is not there, and no other', async () => {
    const missing = { reference: 'localhost/none:v1', pullPolicy: 'Never' } as const;
    await create('no-picture', {
      volumes: [{ name: 'data', image: missing }],
      containers: [container('main', { volumeMounts: [{ name: 'data', mountPath: '/data' }] }), container('other')],
    });
    const pod = await until('one runs, one waits', async () => {
      const now = await read('no-picture');
      const [main, other] = now.status?.containerStatuses ?? [];
      return other?.state.running !== undefined && main?.state.waiting?.reason === 'ErrImageNeverPull'
        ? now
        : undefined;
    });
    assert.match(pod.status?.containerStatuses?.[0]?.state.waiting?.message ?? '', /localhost\/none:v1/);
    await remove('no-picture');
    await gone('no-picture');
  });

  it('writes host aliases, shares processes, sends the stop signal of the image and passes on the one a container wants', async () => {
    await node.containerd.importImage({ ref: 'localhost/usr1:v1', stopSignal: 'SIGUSR1' });
    const signals = new Map<string, Signal>();
    node.cri.observe = ({ call, request }) => {
      const { config } = request as CreateContainerRequest;
      if (call === 'CreateContainer' && config !== undefined)
        signals.set(config.metadata?.name ?? '', config.stopSignal);
    };
    const script = 'trap "echo usr1 > /out/signal; exit 0" USR1; trap "echo term > /out/signal; exit 0" TERM; ';
    const pod = await running('shared', {
      os: { name: 'linux' },
      shareProcessNamespace: true,
      hostAliases: [{ ip: '10.1.2.3', hostnames: ['foo', 'foo.example'] }],
      volumes: [{ name: 'out', hostPath: { path: node.dir } }],
      containers: [
        container('main', {
          image: 'localhost/usr1:v1',
          command: ['sh', '-c', `${script}while :; do sleep 1000 & wait $!; done`],
          volumeMounts: [{ name: 'out', mountPath: '/out' }],
        }),
        container('looks'),
        container('own', { lifecycle: { stopSignal: 'SIGUSR2' } }),
      ],
    });
    assert.match(await exec(pod, 'main', 'cat /etc/hosts'), /^10\.1\.2\.3\tfoo\tfoo\.example$/m);
    assert.match(await exec(pod, 'looks', 'ps'), /\/pause[^]*trap "echo usr1/);
    // containerd 2.1 does not know a container's own wish yet: what we asked for is all there is to see.
    assert.equal(signals.get('own'), Signal.SIGUSR2);
    assert.equal(signals.get('looks'), Signal.RUNTIME_DEFAULT);
    await remove('shared');
    await gone('shared');
    assert.equal(readFileSync(join(node.dir, 'signal'), 'utf8'), 'usr1\n');
  });
});

const OLDER = ['1.6', '1.7'] as const;
const missing = await missingContainerds(OLDER);
for (const version of OLDER)
  describe(`containerd ${version}`, { skip: missing.get(version) ?? false }, () => {
    before(async () => {
      node = await startNode({ containerd: version });
    });
    after(() => node?.stop());

    it('runs, restarts and stops a pod', async () => {
      const pod = await running('plain', { containers: [container('main'), container('beside')] });
      await node.containerd.runtime.stopContainer({ containerId: idOf(pod, 'main'), timeout: 0 }, never);
      const again = await until('it runs again', async () => {
        const now = await read('plain');
        const main = now.status?.containerStatuses?.find((c) => c.name === 'main');
        return main?.restartCount === 1 && main.ready ? now : undefined;
      });
      assert.equal(idOf(again, 'beside'), idOf(pod, 'beside'), 'the other went on');
      await remove('plain');
      await gone('plain');
    });

    it('refuses a pod users of its own with the reason, and the pod waits', async () => {
      await create('own-users', { hostUsers: false, containers: [container('main')] });
      const event = await until('the refusal', async () =>
        (await eventsOf('own-users')).find((e) => e.reason === 'FailedCreatePodSandBox'),
      );
      assert.match(event.message ?? '', /can't set `spec.hostUsers: false`, runtime does not support user namespaces/);
      assert.equal((await read('own-users')).status?.phase, 'Pending');
      await remove('own-users');
      await gone('own-users');
    });
  });
