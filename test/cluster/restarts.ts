// The kubelet goes and comes back: what changed meanwhile is caught up with, what did not change goes on untouched.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { KubeObject } from '../../src/core/meta.ts';
import type { Pod } from '../../src/core/pod.ts';
import { ContainerState } from '../../src/cri/gen/cri.ts';
import { NODES, RUNTIME_CLASSES, SECRETS } from '../../src/kube/resources.ts';
import { isFault } from '../../src/lib/errors.ts';
import { NODE_NAME, type TestNode } from '../harness/node.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';
import { nodeReady, readLease, readNode, untilNode } from './node-view.ts';
import { container, never, Scene, shell, statusOf } from './scene.ts';

/** How long the API server is away, each time. */
const AWAY_MS = (process.env['KTS_API_AWAY_MS'] ?? '8000,3000').split(',').map(Number);
/** The better of the two counts: machines that run tests are busy. */
const LATER_MS = 3000;
const SLOWER = 3;

const manifest = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { terminationGracePeriodSeconds: 1, containers: [container('main')] },
  });

async function runningOf(node: TestNode, uid: string): Promise<number> {
  const filter = {
    labelSelector: { 'io.kubernetes.pod.uid': uid },
    state: { state: ContainerState.CONTAINER_RUNNING },
  };
  return (await node.containerd.runtime.listContainers({ filter }, never)).containers.length;
}

const containerOf = (pod: Pod): string => statusOf(pod, 'main')?.containerID ?? '';

export function restartSuite(node: () => TestNode): void {
  describe('restarts', () => {
    adoptedStaticPod(node);
    restarted(node);
    deletedNode(node);
    outage(node);
  });
}

export function staticPods(node: () => TestNode): void {
  it('mirrors a static pod, again when the mirror is deleted, and not the container', async () => {
    const n = node();
    writeFileSync(join(n.manifests, 'web.json'), manifest('web'));
    const s = await Scene.open(n, 'default');
    const name = `web-${NODE_NAME}`;
    const known = async (): Promise<Pod | undefined> => {
      try {
        return await s.read(name);
      } catch (err) {
        if (isFault(err, 'notFound')) return undefined;
        throw err;
      }
    };
    await until('there is a mirror', known);
    const mirror = await s.ready(name);
    assert.equal(mirror.metadata.annotations?.['kubernetes.io/config.source'], 'file');
    assert.equal(mirror.metadata.ownerReferences?.[0]?.uid, (await readNode(n)).metadata.uid);
    await s.delete(name);
    const again = await until('there is a new mirror', async () => {
      const pod = await known();
      return pod !== undefined && pod.metadata.uid !== mirror.metadata.uid && pod;
    });
    assert.equal(
      again.metadata.annotations?.['kubernetes.io/config.mirror'],
      mirror.metadata.annotations['kubernetes.io/config.mirror'],
    );
    assert.equal(containerOf(await s.ready(name)), containerOf(mirror));
  });
}

export function rewrittenStaticPod(node: () => TestNode): void {
  it('restarts a static pod whose file is removed and written again; the mirror stays while the pod ends', async () => {
    const n = node();
    const file = join(n.manifests, 'again.json');
    const stubborn = container('main', { command: shell('trap "sleep 3; exit 0" TERM; sleep 1000 & wait') });
    const spec = { terminationGracePeriodSeconds: 10, containers: [stubborn] };
    const metadata = { name: 'again', namespace: 'default' };
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
    writeFileSync(file, text);
    const s = await Scene.open(n, 'default');
    const name = `again-${NODE_NAME}`;
    const first = await s.ready(name);
    rmSync(file);
    writeFileSync(file, text);
    const second = await s.until(name, 'was restarted', (p) => statusOf(p, 'main')?.restartCount === 1);
    assert.equal(second.metadata.uid, first.metadata.uid, 'the same mirror all the time');
    await s.ready(name);

    rmSync(file);
    const uid = first.metadata.annotations?.['kubernetes.io/config.hash'] ?? '';
    await until('its container is gone', async () => {
      const runs = (await runningOf(n, uid)) > 0;
      if (runs) assert.equal((await s.read(name)).metadata.uid, first.metadata.uid, 'the mirror stays that long');
      return !runs;
    });
    await s.gone(name);
  });
}

function adoptedStaticPod(node: () => TestNode): void {
  it('adopts static pods that run under a UID it would not give them itself', async () => {
    const n = node();
    const s = await Scene.open(n, 'default');
    const name = `web-${NODE_NAME}`;
    const before = await s.ready(name);
    await n.kubelet.kill('SIGTERM');
    // The UID is a hash of the manifest and its path.
    const link = join(n.dir, 'manifests-by-another-name');
    symlinkSync(n.manifests, link);
    n.kubelet.flags = [...n.kubelet.flags, `--pod-manifest-path=${link}`];
    await n.kubelet.start(n.healthzPort);
    await nodeReady(n);
    const later = await s.pod('after-adoption', {});
    await s.ready(later.metadata.name);
    const after = await s.read(name);
    assert.equal(after.metadata.uid, before.metadata.uid, 'the same mirror');
    assert.equal(containerOf(after), containerOf(before), 'the same container');
    const uid = before.metadata.annotations?.['kubernetes.io/config.hash'] ?? '';
    assert.equal(await runningOf(n, uid), 1);
    await s.delete('after-adoption');
  });
}

function restarted(node: () => TestNode): void {
  it('catches up with deletions and leaves running pods alone; an existing node is reconciled', async () => {
    const n = node();
    const s = await Scene.open(n, 'restarts');
    const [, gently, forced] = await Promise.all(['stays', 'gently', 'forced'].map((name) => s.pod(name, {})));
    const [stays] = await Promise.all(['stays', 'gently', 'forced'].map((name) => s.ready(name)));
    writeFileSync(join(n.manifests, 'brief.json'), manifest('brief'));
    const d = await Scene.open(n, 'default');
    const brief = await d.ready(`brief-${NODE_NAME}`);
    await n.kubelet.kill('SIGTERM');
    await s.delete('gently');
    await s.delete('forced', { gracePeriodSeconds: 0 });
    rmSync(join(n.manifests, 'brief.json'));
    const labels = { 'kubernetes.io/hostname': 'wrong', 'example.com/team': 'blue', 'example.com/mine': 'yes' };
    await n.client.patch(NODES, { name: NODE_NAME }, { metadata: { labels } }, never);
    const late = await s.pod('late', {});
    n.kubelet.flags = n.kubelet.flags.map((f) => f.replace('team=red', 'team=green'));
    await n.kubelet.start(n.healthzPort);

    await s.gone('gently');
    await d.gone(`brief-${NODE_NAME}`);
    const hashOf = (pod: Pod): string => pod.metadata.annotations?.['kubernetes.io/config.hash'] ?? '';
    for (const uid of [gently?.metadata.uid ?? '', forced?.metadata.uid ?? '', hashOf(brief)])
      await untilSeen(
        'its containers are gone',
        () => runningOf(n, uid),
        (seen) => seen === 0,
      );
    await s.ready('late');
    assert.ok(late.metadata.uid !== undefined);
    const kept = await s.read('stays');
    assert.equal(containerOf(kept), stays === undefined ? '' : containerOf(stays));
    assert.equal(statusOf(kept, 'main')?.restartCount, 0);
    const seen = await untilNode(
      n,
      'has its own host name again',
      ({ metadata }) => metadata.labels?.['kubernetes.io/hostname'] === NODE_NAME,
    );
    assert.equal(seen.metadata.labels?.['example.com/team'], 'blue', 'labels of an existing node stay');
    assert.equal(seen.metadata.labels['example.com/mine'], 'yes');
    assert.ok(seen.spec?.taints?.some((t) => t.key === 'example.com/fresh'));
  });
}

function deletedNode(node: () => TestNode): void {
  it('registers anew after its Node was deleted, with lease and mirrors', async () => {
    const n = node();
    const before = await readNode(n);
    const s = await Scene.open(n, 'default');
    const name = `web-${NODE_NAME}`;
    const containerBefore = containerOf(await s.ready(name));
    await n.client.delete(NODES, { name: NODE_NAME }, {}, never);
    await n.kubelet.kill('SIGTERM');
    await n.kubelet.start(n.healthzPort);
    const again = await nodeReady(n);
    assert.notEqual(again.metadata.uid, before.metadata.uid);
    assert.equal(again.metadata.labels?.['example.com/team'], 'green', 'a new node has the labels of now');
    assert.equal(containerOf(await s.ready(name)), containerBefore);
    // What belonged to the old node is taken away by the garbage collector, and made again.
    if (!n.api.hasControllers) return;
    const ownerOf = (object: KubeObject | undefined): string | undefined => object?.metadata.ownerReferences?.[0]?.uid;
    const { uid } = again.metadata;
    await untilSeen(
      'the mirror belongs to the new node',
      async () => ownerOf(await s.read(name)),
      (seen) => seen === uid,
    );
    await untilSeen(
      'the lease belongs to the new node',
      async () => ownerOf(await readLease(n)),
      (seen) => seen === uid,
    );
    assert.equal(containerOf(await s.ready(name)), containerBefore);
  });
}

function outage(node: () => TestNode): void {
  it('goes on without the API server, and takes up new work as soon as it is back', async (t) => {
    const n = node();
    const s = await Scene.open(n, 'outage');
    const command = shell('[ -e /job/once ] || { touch /job/once; sleep 4; exit 1; }; sleep 1000');
    await s.pod('steady', {});
    await s.pod('restarts', {
      volumes: [{ name: 'work', emptyDir: {} }],
      containers: [container('main', { command, volumeMounts: [{ name: 'work', mountPath: '/job' }] })],
    });
    const steady = await s.ready('steady');
    await s.ready('restarts');
    const took: number[] = [];
    const begun = performance.now();
    await s.pod('usual', {});
    await s.ready('usual');
    const usualMs = performance.now() - begun;
    for (const awayMs of AWAY_MS) {
      await n.api.stop();
      await timePasses(awayMs, 'an outage');
      await n.api.start();
      const name = `back-${awayMs}`;
      // The test's own client backs off too; how long is no concern here.
      const from = await until('the API server takes a pod', () => {
        const asked = performance.now();
        return s.pod(name, {}).then(() => asked);
      });
      await s.ready(name);
      took.push(Math.round(performance.now() - from));
    }
    t.diagnostic(`pods made at the API server's return were ready after ${took.join(' and ')} ms`);
    assert.ok(Math.min(...took) < LATER_MS + SLOWER * usualMs, `${took.join()} ms, before ${usualMs} ms`);
    assert.equal(containerOf(await s.read('steady')), containerOf(steady));
    const caughtUp = await s.until(
      'restarts',
      'was restarted meanwhile',
      (p) => statusOf(p, 'main')?.restartCount === 1,
    );
    assert.equal(statusOf(caughtUp, 'main')?.lastState.terminated?.exitCode, 1);
  });
}

/** What the pod that comes back saw before. */
type Remembered = { readonly uid: string; readonly seen: string };

export function rebootSuite(node: () => TestNode, meanwhile: () => void): void {
  let remembered: Remembered | undefined;
  describe('a reboot without the API server', () => {
    it('brings its pods back, and reports them when the API server is there', async () => {
      remembered = await rebootOffline(node());
    });

    // After an outage objects are asked for one by one, over half a minute.
    describe('and when the API server is back', { concurrency: true }, () => {
      it('replaces what pods remembered by fresh values', async () => {
        assert.ok(remembered !== undefined, 'the pod is back');
        const { uid, seen } = remembered;
        const look = async (): Promise<boolean> => isFresh(seen, await inside(node(), uid));
        await until('fresh values replace the old ones', look);
        const s = await Scene.open(node(), 'offline');
        await s.delete('remembered');
        await s.gone('remembered');
      });
      meanwhile();
    });
  });
}

async function rebootOffline(n: TestNode): Promise<Remembered> {
  const s = await Scene.open(n, 'offline');
  await nodeReady(n);
  const made = await needyPod(s);
  const before = await s.ready('remembered');
  const uid = made.metadata.uid ?? '';
  const seen = await inside(n, uid);
  assert.match(seen, /^from the map hidden a.b hidden\n/);
  await until('all is written down', () => existsSync(join(n.dir, 'kubelet', 'last_known', 'tokens.json')));
  await timePasses(1000, 'another instant'); // changes are written within a moment
  await n.kubelet.kill('SIGKILL');
  await n.api.stop();
  await reboot(n);
  await n.kubelet.start(n.healthzPort);
  await untilSeen(
    'the pod runs again',
    () => runningOf(n, uid),
    (seen) => seen === 1,
  );
  assert.equal(await inside(n, uid), seen, 'with what it had before');
  await n.api.start();
  const pod = await s.until('remembered', 'is reported', (p) => containerOf(p) !== containerOf(before));
  assert.equal(pod.metadata.uid, uid);
  await s.ready('remembered');
  await nodeReady(n);
  await s.patch(SECRETS, 'hidden', { stringData: { 'a.b': 'found' } });
  return { uid, seen };
}

/** A pod that needs something of every kind the API server has for pods. */
async function needyPod(s: Scene): Promise<Pod> {
  await s.secret('hidden', { 'a.b': 'hidden' });
  await s.secret('pull', { '.dockerconfigjson': '{"auths":{}}' }, { type: 'kubernetes.io/dockerconfigjson' });
  await s.configMap('map', { TEXT: 'from the map' });
  const labels = { 'example.com/given': 'later' };
  await s.node.client.patch(NODES, { name: NODE_NAME }, { metadata: { labels } }, never);
  await s.node.client.create(RUNTIME_CLASSES, {}, { metadata: { name: 'plain' }, handler: 'runc' }, never);
  return s.pod('remembered', {
    automountServiceAccountToken: true,
    nodeSelector: { 'example.com/given': 'later' },
    runtimeClassName: 'plain',
    imagePullSecrets: [{ name: 'pull' }],
    volumes: [{ name: 'hidden', secret: { secretName: 'hidden' } }],
    containers: [
      container('main', {
        envFrom: [{ configMapRef: { name: 'map' } }],
        env: [{ name: 'HIDDEN', valueFrom: { secretKeyRef: { name: 'hidden', key: 'a.b' } } }],
        volumeMounts: [{ name: 'hidden', mountPath: '/hidden' }],
      }),
    ],
  });
}

/** Environment, secret volume and token as the pod's container sees them. */
async function inside(n: TestNode, uid: string): Promise<string> {
  const filter = {
    labelSelector: { 'io.kubernetes.pod.uid': uid },
    state: { state: ContainerState.CONTAINER_RUNNING },
  };
  const { containers } = await n.containerd.runtime.listContainers({ filter }, never);
  const script =
    'echo $TEXT $HIDDEN $(ls /hidden) $(cat /hidden/*); cat /var/run/secrets/kubernetes.io/serviceaccount/*';
  const asked = { containerId: containers[0]?.id ?? '', cmd: ['sh', '-c', script], timeout: 10 };
  const { stdout, stderr, exitCode } = await n.containerd.runtime.execSync(asked, never);
  assert.equal(exitCode, 0, Buffer.from(stderr).toString());
  return Buffer.from(stdout).toString();
}

/** The new secret is there, and a token that is not the old one. */
function isFresh(before: string, now: string): boolean {
  const tokenIn = (text: string): string => /ey[\w-]+\.[\w-]+\.[\w-]+/.exec(text)?.[0] ?? '';
  assert.notEqual(tokenIn(before), '');
  return now.startsWith('from the map hidden a.b found\n') && ![tokenIn(before), ''].includes(tokenIn(now));
}

/** What a reboot takes away: all that runs, and all that is in memory. */
async function reboot(n: TestNode): Promise<void> {
  const { items } = await n.containerd.runtime.listPodSandbox({}, never);
  for (const { id } of items) {
    await n.containerd.runtime.stopPodSandbox({ podSandboxId: id }, never);
    await n.containerd.runtime.removePodSandbox({ podSandboxId: id }, never);
  }
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  for (const place of mounts.map((line) => line.split(' ')[4] ?? ''))
    if (place.startsWith(join(n.dir, 'kubelet', 'pods'))) execFileSync('umount', [place]);
}
