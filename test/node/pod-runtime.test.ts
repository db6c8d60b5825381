// Pods through PodRuntime on a real containerd: they run, restart, stop, and nothing is left over.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { mkdir, readFile, readdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ContainerState } from '../../src/cri/gen/cri.ts';
import { namespaceOf, uidOf, type Pod } from '../../src/core/pod.ts';
import { containerId, sandboxId } from '../../src/core/ids.ts';
import type { ObservedContainer, PodSnapshot } from '../../src/core/snapshot.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { PodRuntime } from '../../src/runtime/pod-runtime.ts';
import type { PodSyncResult } from '../../src/runtime/sync-result.ts';
import { BUSYBOX_IMAGE, startContainerd, type PrivateRuntime } from '../harness/containerd.ts';
import {
  facts,
  fakeCluster,
  fakeInfra,
  fakeResizeRecords,
  mountsFromSpec,
  recordingEvents,
  removerOn,
  type SeenEvent,
} from '../golden/fixture.ts';
import { timePasses, until } from '../harness/until.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const signal = new AbortController().signal;
const CGROUP = `/kts-pod-runtime-${process.pid}`;
let containerd: PrivateRuntime;
let root = '';

before(async () => {
  root = temporaryFolder('kts-runtime-');
  await writeFile(join(root, 'resolv.conf'), 'nameserver 192.0.2.1\n');
  await writeFile(join(root, 'hosts'), '127.0.0.1 localhost\n');
  containerd = await startContainerd();
});
after(async () => {
  await containerd?.stop();
  for (const pattern of [`/sys/fs/cgroup/*${CGROUP}`, `/sys/fs/cgroup${CGROUP}`])
    for (const dir of globSync(`${pattern}/**/`).sort((one, two) => two.length - one.length)) await rmdir(dir);
});

const STATES = {
  [ContainerState.CONTAINER_CREATED]: 'created',
  [ContainerState.CONTAINER_RUNNING]: 'running',
  [ContainerState.CONTAINER_EXITED]: 'exited',
  [ContainerState.CONTAINER_UNKNOWN]: 'unknown',
} as const;

async function snapshotOf(pod: Pod): Promise<PodSnapshot> {
  const filter = { labelSelector: { 'io.kubernetes.pod.uid': uidOf(pod) } };
  const { items } = await containerd.runtime.listPodSandbox({ filter }, signal);
  const listed = await containerd.runtime.listContainers({ filter }, signal);
  const sandboxes = await Promise.all(
    items.map(async (s) => {
      const { status } = await containerd.runtime.podSandboxStatus({ podSandboxId: s.id }, signal);
      return {
        id: sandboxId(s.id),
        attempt: s.metadata?.attempt ?? 0,
        ready: s.state === 0,
        createdAt: s.createdAt,
        hostNetwork: pod.spec.hostNetwork === true,
        ips: status?.network?.ip ? [status.network.ip] : [],
        runtimeHandler: '',
      };
    }),
  );
  const containers = await Promise.all(
    listed.containers.map(async (c): Promise<ObservedContainer> => {
      const { status } = await containerd.runtime.containerStatus({ containerId: c.id }, signal);
      assert.ok(status !== undefined);
      return {
        ...status,
        id: containerId(c.id),
        name: c.metadata?.name ?? '',
        sandboxId: sandboxId(c.podSandboxId),
        attempt: c.metadata?.attempt ?? 0,
        state: STATES[status.state],
        image: '',
        imageRef: '',
        mounts: [],
        resources: {},
        user: { uid: 0, gid: 0, supplementalGroups: [] },
        stopSignal: '',
      };
    }),
  );
  containers.sort((a, b) => Number(b.createdAt - a.createdAt));
  sandboxes.sort((a, b) => b.attempt - a.attempt);
  return {
    uid: uidOf(pod),
    name: pod.metadata.name,
    namespace: namespaceOf(pod),
    sandboxes,
    containers,
    ips: sandboxes[0]?.ips ?? [],
    version: 1,
  };
}

class Node {
  readonly events: SeenEvent[] = [];
  readonly writes: [string, number][] = [];
  readonly remover = removerOn(containerd.runtime, root);
  readonly runtime: PodRuntime;

  constructor(pod: Pod) {
    this.runtime = new PodRuntime(
      {
        cri: containerd.runtime,
        images: {
          ensure: async ({ image }) => {
            const { image: found } = await containerd.images.imageStatus({ image: { image } }, signal);
            return { imageRef: found?.id ?? '', image: found };
          },
        },
        volumes: mountsFromSpec(root, pod),
        resources: {
          cgroupParentOf: (p) => `${CGROUP}/pod${uidOf(p)}`,
          resize: fakeResizeRecords(this.writes),
        },
        remover: this.remover,
        cluster: fakeCluster(),
        events: recordingEvents(this.events),
        infra: fakeInfra(systemClock, root),
      },
      { ...facts(root), hugePageSizes: [] },
    );
  }

  async sync(pod: Pod, onSandboxReady?: (id: string, ips: readonly string[]) => void): Promise<PodSyncResult> {
    const probes = { liveness: () => undefined, startup: () => undefined };
    const snapshot = await snapshotOf(pod);
    return this.runtime.syncPod(
      { pod, snapshot, pullSecrets: [], probes, ...(onSandboxReady === undefined ? {} : { onSandboxReady }) },
      signal,
    );
  }

  async end(pod: Pod): Promise<void> {
    await this.runtime.killPod({ pod, snapshot: await snapshotOf(pod), graceOverrideSeconds: 2 }, signal);
    const left = await snapshotOf(pod);
    assert.ok(left.containers.every((c) => c.state === 'exited' || c.state === 'created'));
    assert.ok(left.sandboxes.every((s) => !s.ready));
    // containerd cleans up what it was called off from after its answer; until then it refuses to remove it.
    for (const container of left.containers)
      await until(`${container.id} is removed`, async () => {
        await this.remover.remove(container, false, signal);
        return true;
      });
    for (const { id } of left.sandboxes) await containerd.runtime.removePodSandbox({ podSandboxId: id }, signal);
  }
}

let serial = 0;
const podOf = (name: string, spec: Partial<Pod['spec']> & Pick<Pod['spec'], 'containers'>): Pod => ({
  metadata: {
    name,
    namespace: 'golden',
    uid: `00000000-0000-4000-8000-${String(++serial).padStart(12, '0')}`,
    annotations: { 'kubernetes.io/config.source': 'api' },
  },
  spec: { enableServiceLinks: true, terminationGracePeriodSeconds: 2, restartPolicy: 'Always', ...spec },
});
const box = (name: string, script: string): Pod['spec']['containers'][number] => ({
  name,
  image: BUSYBOX_IMAGE,
  imagePullPolicy: 'Never',
  command: ['sh', '-c', script],
  terminationMessagePath: '/dev/termination-log',
  terminationMessagePolicy: 'File',
});

const waitFor = (pod: Pod, when: (s: PodSnapshot) => boolean): Promise<PodSnapshot> =>
  until(`${pod.metadata.name} is so`, async () => {
    const seen = await snapshotOf(pod);
    return when(seen) && seen;
  });

const log = (pod: Pod, container: string, n = 0): Promise<string> =>
  readFile(join(root, 'logs', `golden_${pod.metadata.name}_${uidOf(pod)}`, container, `${n}.log`), 'utf8');

/** The log, once it says what is waited for. */
const logOnce = (pod: Pod, container: string, what: RegExp): Promise<string> =>
  until(`${container} logs ${String(what)}`, async () => {
    const text = await log(pod, container);
    return what.test(text) && text;
  });

/** CPU quota and memory limit of a cgroup, whichever version this machine has. */
function cgroupValues(path: string): string[] {
  const read = (...files: string[]): string =>
    files.flatMap((file) => globSync(file)).map((file) => readFileSync(file, 'utf8').trim())[0] ?? '';
  const root = '/sys/fs/cgroup';
  const quota = read(`${root}/cpu${path}/cpu.cfs_quota_us`, `${root}${path}/cpu.max`).split(' ')[0] ?? '';
  return [quota, read(`${root}/memory${path}/memory.limit_in_bytes`, `${root}${path}/memory.max`)];
}

describe('pods on containerd', () => {
  it('runs a pod with its address, hosts file, environment and log link, and stops it', async () => {
    const pod = podOf('plain', {
      containers: [
        {
          ...box(
            'c',
            "cat /etc/hosts; echo v=$GREETING; echo done > /dev/termination-log; trap 'exit 0' TERM; sleep 1000 & wait",
          ),
          env: [
            { name: 'NAME', value: 'world' },
            { name: 'GREETING', value: 'hello $(NAME) $(KUBERNETES_SERVICE_HOST)' },
          ],
        },
      ],
    });
    const node = new Node(pod);
    let ready: readonly string[] = [];
    const result = await node.sync(pod, (_id, ips) => (ready = ips));
    assert.equal(result.failure, undefined);
    assert.equal(ready.length, 1);
    assert.deepEqual(
      node.events.map((e) => e.reason),
      ['Created', 'Started'],
    );
    await waitFor(pod, (s) => s.containers[0]?.state === 'running');
    const text = await logOnce(pod, 'c', /v=/);
    assert.match(text, new RegExp(`${ready[0]}\\s+plain`));
    assert.match(text, /v=hello world 10\.96\.0\.1/);
    assert.equal((await readdir(join(root, 'container-logs'))).length, 1);
    assert.equal((await node.sync(pod)).acted, false);
    await node.end(pod);
    assert.deepEqual(await readdir(join(root, 'container-logs')), []);
  });

  // Each with a pod of its own; most of it is waiting for containers.
  describe('side by side', { concurrency: 3 }, () => {
    it('runs init containers one by one, keeps a sidecar, stops the sidecar last', async () => {
      const shared = join(root, 'shared');
      await mkdir(shared, { recursive: true });
      const mounts = { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] };
      const pod = podOf('inits', {
        initContainers: [
          { ...box('first', 'echo one > /scratch/one'), ...mounts },
          { ...box('side', "trap 'sleep 0.2; exit 0' TERM; sleep 1000 & wait"), restartPolicy: 'Always' },
          { ...box('second', 'test -f /scratch/one'), ...mounts },
        ],
        containers: [box('main', "trap 'exit 0' TERM; sleep 1000 & wait")],
        volumes: [{ name: 'scratch', hostPath: { path: shared } }],
      });
      const node = new Node(pod);
      await node.sync(pod);
      await waitFor(pod, (s) => s.containers[0]?.state === 'exited');
      for (const name of ['side', 'second']) {
        await node.sync(pod);
        await waitFor(pod, (s) => s.containers.some((c) => c.name === name && c.state !== 'created'));
      }
      await waitFor(pod, (s) => s.containers.some((c) => c.name === 'second' && c.state === 'exited'));
      await node.sync(pod);
      const seen = await waitFor(pod, (s) => s.containers.some((c) => c.name === 'main' && c.state === 'running'));
      assert.deepEqual(seen.containers.map((c) => c.name).reverse(), ['first', 'side', 'second', 'main']);
      await node.runtime.killPod({ pod, snapshot: seen }, signal);
      const stopped = await snapshotOf(pod);
      const ended = (name: string): bigint => stopped.containers.find((c) => c.name === name)?.finishedAt ?? 0n;
      assert.ok(ended('side') >= ended('main'));
      await node.end(pod);
    });

    it('restarts a failing container at once, then only after its back-off', async () => {
      const pod = podOf('crash', { containers: [box('c', 'exit 3')] });
      const node = new Node(pod);
      await node.sync(pod);
      await waitFor(pod, (s) => s.containers[0]?.state === 'exited');
      await node.sync(pod);
      await waitFor(pod, (s) => s.containers.length === 2 && s.containers[0]?.state === 'exited');
      const result = await node.sync(pod);
      assert.equal(result.startErrors.get('c')?.reason, 'CrashLoopBackOff');
      assert.match(
        result.startErrors.get('c')?.message ?? '',
        /^back-off 10s restarting failed container=c pod=crash_golden\(/,
      );
      const retryAt = systemClock.now() + (result.retryAt ?? 0) - systemClock.monotonic();
      const [last] = (await snapshotOf(pod)).containers;
      const wait = retryAt - Number((last?.finishedAt ?? 0n) / 1_000_000n);
      assert.ok(wait > 9_000 && wait < 11_000, `${wait} ms after its end`);
      await node.end(pod);
    });

    it('says why a command cannot run', async () => {
      const pod = podOf('badcmd', { containers: [{ ...box('c', ''), command: ['/does/not/exist'] }] });
      const node = new Node(pod);
      const result = await node.sync(pod);
      assert.equal(result.startErrors.get('c')?.reason, 'RunContainerError');
      assert.match(node.events.at(-1)?.message ?? '', /^Error: .*no such file or directory/);
      await node.end(pod);
    });

    it('takes the place of a container whose name is still taken', async () => {
      const pod = podOf('taken', { containers: [box('c', 'sleep 1000')] });
      const node = new Node(pod);
      await node.sync(pod);
      const seen = await waitFor(pod, (s) => s.containers[0]?.state === 'running');
      await containerd.runtime.stopContainer({ containerId: seen.containers[0]?.id ?? '', timeout: 0 }, signal);
      // As after a crash between creation and the first look: the runtime has attempt 0, the snapshot does not.
      await rm(join(root, 'logs', `golden_taken_${uidOf(pod)}`, 'c'), { recursive: true, force: true });
      const probes = { liveness: () => undefined, startup: () => undefined };
      const snapshot = { ...(await snapshotOf(pod)), containers: [] };
      const result = await node.runtime.syncPod({ pod, snapshot, pullSecrets: [], probes }, signal);
      assert.equal(result.failure, undefined);
      assert.equal((await snapshotOf(pod)).containers.length, 1);
      await node.end(pod);
    });

    it('makes a new sandbox for one that died', async () => {
      const pod = podOf('again', { containers: [box('c', 'sleep 1000')] });
      const node = new Node(pod);
      await node.sync(pod);
      const seen = await snapshotOf(pod);
      await containerd.runtime.stopPodSandbox({ podSandboxId: seen.sandboxes[0]?.id ?? '' }, signal);
      const result = await node.sync(pod);
      assert.equal(result.failure, undefined);
      const again = await snapshotOf(pod);
      assert.deepEqual(
        again.sandboxes.map((s) => [s.attempt, s.ready]),
        [
          [1, true],
          [0, false],
        ],
      );
      assert.ok(node.events.some((e) => e.reason === 'SandboxChanged'));
      await node.end(pod);
    });

    it('runs hooks, and stops a container whose post-start hook fails', async () => {
      const pod = podOf('hooks', {
        restartPolicy: 'Never',
        containers: [
          {
            ...box('good', "trap 'exit 0' TERM; sleep 1000 & wait"),
            lifecycle: {
              postStart: { exec: { command: ['sh', '-c', 'echo hi > /tmp/hi'] } },
              preStop: { sleep: { seconds: 1 } },
            },
          },
          {
            ...box('bad', "trap 'exit 0' TERM; sleep 1000 & wait"),
            lifecycle: { postStart: { exec: { command: ['sh', '-c', 'exit 7'] } } },
          },
        ],
      });
      const node = new Node(pod);
      const result = await node.sync(pod);
      assert.equal(result.startErrors.get('good'), undefined);
      assert.equal(result.startErrors.get('bad')?.reason, 'PostStartHookError');
      const seen = await snapshotOf(pod);
      assert.deepEqual(
        seen.containers.map((c) => [c.name, c.state]),
        [
          ['bad', 'exited'],
          ['good', 'running'],
        ],
      );
      const good = seen.containers.find((c) => c.name === 'good')?.id ?? '';
      const hi = await containerd.runtime.execSync({ containerId: good, cmd: ['cat', '/tmp/hi'], timeout: 5 }, signal);
      assert.equal(Buffer.from(hi.stdout).toString(), 'hi\n');
      await node.end(pod);
    });

    it('a debug container sees its target, a resize reaches the cgroup', async () => {
      const limits = { cpu: '100m', memory: '32Mi' };
      const target = { ...box('c', 'sleep 1000'), resources: { limits, requests: limits } };
      const pod = podOf('debug', { containers: [target] });
      const node = new Node(pod);
      await node.sync(pod);
      const debugged = {
        ...pod,
        spec: {
          ...pod.spec,
          ephemeralContainers: [{ ...box('d', 'ps | grep -c "sleep 1000"; sleep 1000'), targetContainerName: 'c' }],
        },
      };
      assert.equal((await node.sync(debugged)).failure, undefined);
      assert.match(await logOnce(pod, 'd', /stdout F/), /stdout F [1-9]/);
      const more = { cpu: '200m', memory: '64Mi' };
      const resized = {
        ...debugged,
        spec: { ...debugged.spec, containers: [{ ...target, resources: { limits: more, requests: more } }] },
      };
      const result = await node.sync(resized);
      assert.equal(result.failure, undefined);
      assert.deepEqual(
        node.writes.map(([key]) => key),
        ['memoryLimitBytes', 'cpuQuota', 'cpuShares'],
      );
      const seen = await snapshotOf(pod);
      const id = seen.containers.find((c) => c.name === 'c')?.id ?? '';
      assert.equal(seen.containers.length, 2, 'nothing restarted');
      assert.deepEqual(cgroupValues(`${CGROUP}/pod${uidOf(pod)}/${id}`), ['20000', String(64 * 2 ** 20)]);
      assert.equal((await node.sync(resized)).acted, false);
      await node.end(pod);
    });

    it('called off at any instant, the next try makes exactly one of everything', async () => {
      for (let i = 0; i < 12; i++) {
        const pod = podOf(`abort-${i}`, { containers: [box('c', "trap 'exit 0' TERM; sleep 1000 & wait")] });
        const node = new Node(pod);
        const stop = new AbortController();
        const probes = { liveness: () => undefined, startup: () => undefined };
        const first = node.runtime
          .syncPod({ pod, snapshot: await snapshotOf(pod), pullSecrets: [], probes }, stop.signal)
          .catch(() => undefined);
        await timePasses(i * 14, 'another instant');
        stop.abort(new Error('called off'));
        await first;
        let ready = false;
        // containerd needs some seconds until what it was called off from can be removed.
        for (let n = 0; n < 240 && !ready; n++) {
          await new Node(pod).sync(pod);
          const seen = await snapshotOf(pod);
          ready = seen.containers.some((c) => c.state === 'running') && seen.sandboxes.some((s) => s.ready);
          if (!ready) await timePasses(50, 'another instant');
        }
        // A start that was cut off must not come through later beside the one that replaced it.
        await timePasses(200, 'nothing to happen');
        const seen = await snapshotOf(pod);
        assert.equal(seen.containers.filter((c) => c.state === 'running').length, 1, `called off after ${i * 14} ms`);
        assert.equal(seen.sandboxes.filter((s) => s.ready).length, 1, `called off after ${i * 14} ms`);
        await node.end(pod);
      }
    });
  });
});
