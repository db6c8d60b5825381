// What the kubelet relies on in a CRI runtime. Run on the fake and on every containerd we support; a fake may only be
// used in other tests while it passes this.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { after, before, it } from 'node:test';
import {
  ContainerEventType,
  ContainerState,
  NamespaceMode,
  PodSandboxState,
  type ContainerEventResponse,
} from '../../../src/cri/gen/cri.ts';
import type { CriImages, CriRuntime } from '../../../src/cri/services.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { isFault } from '../../../src/lib/errors.ts';
import { BUSYBOX_IMAGE } from '../../harness/containerd.ts';
import { barePodLabels, bareSandboxConfig } from '../../harness/pods.ts';
import { until, untilSeen } from '../../harness/until.ts';

export type RuntimeUnderTest = {
  readonly root: string;
  readonly runtime: CriRuntime;
  readonly images: CriImages;
  /** Makes a second image with this name. */
  importImage(ref: string): Promise<void>;
  stop(): Promise<void>;
};
export type ContractOptions = {
  readonly events: boolean;
  /** Ways of CRI-O's that differ from containerd's. */
  readonly crio?: boolean;
};

const { signal } = new AbortController();
const MISSING = 'f'.repeat(64);
const LONG_GRACE_S = 3600;
const { CONTAINER_CREATED, CONTAINER_EXITED, CONTAINER_RUNNING } = ContainerState;

export function criContract(open: () => Promise<RuntimeUnderTest>, options: ContractOptions): void {
  let on: RuntimeUnderTest;
  before(async () => {
    on = await open();
  });
  after(() => on.stop());

  const sandbox = async (name: string, pid: NamespaceMode = NamespaceMode.CONTAINER) => {
    const uid = randomUUID();
    const config = {
      ...bareSandboxConfig(on.root, name, uid),
      linux: { securityContext: { namespaceOptions: { pid } } },
    };
    const { podSandboxId } = await on.runtime.runPodSandbox({ config }, signal);
    return { id: podSandboxId, config, uid };
  };
  type Sandbox = Awaited<ReturnType<typeof sandbox>>;
  const create = async (
    pod: Sandbox,
    name: string,
    command: readonly string[],
    attempt = 0,
    pid: NamespaceMode = NamespaceMode.CONTAINER,
  ): Promise<string> => {
    const config = {
      metadata: { name, attempt },
      image: { image: BUSYBOX_IMAGE, userSpecifiedImage: BUSYBOX_IMAGE },
      command,
      labels: { ...barePodLabels(pod.config.metadata.name, pod.uid), 'io.kubernetes.container.name': name },
      annotations: { note: 'kept' },
      logPath: `${name}.log`,
      linux: { securityContext: { namespaceOptions: { pid } } },
    };
    const request = { podSandboxId: pod.id, sandboxConfig: pod.config, config };
    return (await on.runtime.createContainer(request, signal)).containerId;
  };
  const start = async (pod: Sandbox, name: string, command: readonly string[]): Promise<string> => {
    const id = await create(pod, name, command);
    await on.runtime.startContainer({ containerId: id }, signal);
    return id;
  };
  const statusOf = async (containerId: string) => {
    const { status } = await on.runtime.containerStatus({ containerId }, signal);
    assert.ok(status !== undefined);
    return status;
  };
  const stateOf = async (id: string): Promise<ContainerState> => (await statusOf(id)).state;
  /** A container that ends when it is asked to. */
  const startPolite = async (pod: Sandbox): Promise<string> => {
    const id = await start(pod, 'polite', ['sh', '-c', "trap 'exit 0' TERM; echo ready; sleep 1000 & wait"]);
    const { logPath } = await statusOf(id);
    await untilSeen(
      'it listens',
      () => readFileSync(logPath, 'utf8'),
      (seen) => seen.includes('ready'),
    );
    return id;
  };
  const becomes = (id: string, state: ContainerState): Promise<boolean> =>
    until(`container in state ${state}`, async () => (await stateOf(id)) === state);
  /** As a kubelet does: CRI-O gives containers that still run all the time the call has. */
  const remove = async (pod: Sandbox): Promise<void> => {
    const filter = { podSandboxId: pod.id, state: { state: CONTAINER_RUNNING } };
    for (const { id } of (await on.runtime.listContainers({ filter }, signal)).containers)
      await on.runtime.stopContainer({ containerId: id, timeout: 0 }, signal);
    await on.runtime.stopPodSandbox({ podSandboxId: pod.id }, signal);
    await on.runtime.removePodSandbox({ podSandboxId: pod.id }, signal);
  };

  it('says version 0.1.0 of the CRI and both conditions', async () => {
    assert.equal((await on.runtime.version({ version: '0.1.0' }, signal)).version, '0.1.0');
    const { status } = await on.runtime.status({}, signal);
    for (const type of ['RuntimeReady', 'NetworkReady'])
      assert.equal(status?.conditions.find((c) => c.type === type)?.status, true, type);
  });

  it('runs a sandbox with an address, found by id, label and state', async () => {
    const pod = await sandbox('listed');
    const { status } = await on.runtime.podSandboxStatus({ podSandboxId: pod.id }, signal);
    assert.match(status?.network?.ip ?? '', /^(10|127)\./);
    assert.deepEqual(status?.metadata, pod.config.metadata);
    const labelSelector = { 'io.kubernetes.pod.uid': pod.uid };
    const ready = { state: PodSandboxState.SANDBOX_READY };
    const notReady = { state: PodSandboxState.SANDBOX_NOTREADY };
    const count = async (filter: object): Promise<number> =>
      (await on.runtime.listPodSandbox({ filter }, signal)).items.length;
    assert.equal(await count({ id: pod.id }), 1);
    assert.equal(await count({ labelSelector }), 1);
    assert.equal(await count({ labelSelector, state: ready }), 1);
    assert.equal(await count({ labelSelector, state: notReady }), 0);
    await on.runtime.stopPodSandbox({ podSandboxId: pod.id }, signal);
    assert.equal(await count({ labelSelector, state: notReady }), 1);
    await remove(pod);
    assert.equal(await count({ labelSelector }), 0);
  });

  it('makes no second sandbox or container of the same name, and names the first', async () => {
    const pod = await sandbox('twice');
    const leadsTo = async (first: string, again: Promise<string>): Promise<void> => {
      if (options.crio === true) return assert.equal(await again, first);
      await assert.rejects(again, (err: Error) => err.message.includes(`is reserved for "${first}"`));
    };
    const again = on.runtime.runPodSandbox({ config: pod.config }, signal);
    await leadsTo(
      pod.id,
      again.then((answer) => answer.podSandboxId),
    );
    const id = await create(pod, 'c', ['sleep', '1000']);
    await leadsTo(id, create(pod, 'c', ['sleep', '1000']));
    await create(pod, 'c', ['sleep', '1000'], 1);
    await remove(pod);
  });

  it('takes a container from created over running to exited, and keeps what it was given', async () => {
    const pod = await sandbox('life');
    const id = await create(pod, 'c', ['sh', '-c', 'sleep 2; exit 3']);
    assert.equal(await stateOf(id), CONTAINER_CREATED);
    await on.runtime.startContainer({ containerId: id }, signal);
    const running = await statusOf(id);
    assert.equal(running.state, CONTAINER_RUNNING);
    assert.ok(running.startedAt >= running.createdAt && running.finishedAt === 0n);
    assert.equal(running.logPath, `${pod.config.logDirectory}/c.log`);
    assert.ok(existsSync(running.logPath));
    await becomes(id, CONTAINER_EXITED);
    const exited = await statusOf(id);
    assert.deepEqual([exited.exitCode, exited.reason], [3, 'Error']);
    assert.ok(exited.finishedAt > exited.startedAt);
    assert.deepEqual(exited.annotations, { note: 'kept' });
    assert.equal(exited.image?.image, BUSYBOX_IMAGE);
    await remove(pod);
  });

  it('calls a good end Completed', async () => {
    const pod = await sandbox('completes');
    const id = await start(pod, 'c', ['true']);
    await becomes(id, CONTAINER_EXITED);
    assert.deepEqual([(await statusOf(id)).exitCode, (await statusOf(id)).reason], [0, 'Completed']);
    await assert.rejects(on.runtime.startContainer({ containerId: id }, signal));
    await remove(pod);
  });

  it('fails to start what is not there, and the container is exited or was never made', async () => {
    const pod = await sandbox('nothing');
    const created = create(pod, 'c', ['/does/not/exist']);
    if (options.crio === true) {
      await assert.rejects(created, { kind: 'internal' });
      assert.deepEqual((await on.runtime.listContainers({ filter: { podSandboxId: pod.id } }, signal)).containers, []);
    } else {
      const id = await created;
      await assert.rejects(on.runtime.startContainer({ containerId: id }, signal), { kind: 'internal' });
      assert.equal(await stateOf(id), CONTAINER_EXITED);
    }
    await remove(pod);
  });

  it('stops with SIGTERM at once, with SIGKILL after the grace period, and twice without harm', async () => {
    const pod = await sandbox('stops');
    const polite = await startPolite(pod);
    const deaf = await start(pod, 'deaf', ['sleep', '1000']);
    // A grace period that lasts longer than any test is never waited for.
    await on.runtime.stopContainer({ containerId: polite, timeout: LONG_GRACE_S }, signal);
    assert.equal((await statusOf(polite)).exitCode, 0);
    const begun = systemClock.monotonic();
    await on.runtime.stopContainer({ containerId: deaf, timeout: 1 }, signal);
    const tookMs = systemClock.monotonic() - begun;
    assert.ok(tookMs >= 900, `${tookMs} ms`);
    assert.equal((await statusOf(deaf)).exitCode, 137);
    await on.runtime.stopContainer({ containerId: deaf, timeout: 1 }, signal);
    await remove(pod);
    const shared = await sandbox('one-tree', NamespaceMode.POD);
    const notFirst = await create(shared, 'not-first', ['sleep', '1000'], 0, NamespaceMode.POD);
    await on.runtime.startContainer({ containerId: notFirst }, signal);
    await on.runtime.stopContainer({ containerId: notFirst, timeout: LONG_GRACE_S }, signal);
    assert.equal((await statusOf(notFirst)).exitCode, 143, 'only PID 1 may ignore SIGTERM');
    await remove(shared);
  });

  it('stops all containers with their sandbox, and removes all with it', async () => {
    const pod = await sandbox('whole');
    const id = await startPolite(pod);
    await on.runtime.stopPodSandbox({ podSandboxId: pod.id }, signal);
    await becomes(id, CONTAINER_EXITED);
    await remove(pod);
    await assert.rejects(statusOf(id), { kind: 'notFound' });
    // A sandbox that is gone is nothing to stop: some runtimes agree silently, some say so.
    await remove(pod).catch((err: unknown) => assert.ok(isFault(err, 'notFound')));
  });

  it('removes a running container', async () => {
    const pod = await sandbox('forced');
    const id = await startPolite(pod);
    await on.runtime.removeContainer({ containerId: id }, signal);
    await assert.rejects(statusOf(id), { kind: 'notFound' });
    await on.runtime.removeContainer({ containerId: id }, signal);
    await remove(pod);
  });

  it('says notFound for what does not exist', async () => {
    await assert.rejects(on.runtime.podSandboxStatus({ podSandboxId: MISSING }, signal), { kind: 'notFound' });
    await assert.rejects(on.runtime.containerStatus({ containerId: MISSING }, signal), { kind: 'notFound' });
    await assert.rejects(on.runtime.startContainer({ containerId: MISSING }, signal));
    const stopped = on.runtime.stopContainer({ containerId: MISSING, timeout: 1 }, signal);
    await stopped.catch((err: unknown) => assert.ok(isFault(err, 'notFound')));
  });

  it('lists containers by pod, sandbox and state', async () => {
    const pod = await sandbox('filters');
    const a = await start(pod, 'a', ['sleep', '1000']);
    const b = await create(pod, 'b', ['sleep', '1000']);
    const ids = async (filter: object): Promise<string[]> =>
      (await on.runtime.listContainers({ filter }, signal)).containers.map((c) => c.id).sort();
    assert.deepEqual(await ids({ labelSelector: { 'io.kubernetes.pod.uid': pod.uid } }), [a, b].sort());
    assert.deepEqual(await ids({ podSandboxId: pod.id, state: { state: CONTAINER_RUNNING } }), [a]);
    assert.deepEqual(await ids({ id: b }), [b]);
    await remove(pod);
  });

  it('runs commands in a container', async () => {
    const pod = await sandbox('execs');
    const id = await start(pod, 'c', ['sleep', '1000']);
    const run = (cmd: string[]) => on.runtime.execSync({ containerId: id, cmd, timeout: 10 }, signal);
    const said = await run(['echo', 'hello']);
    assert.deepEqual([Buffer.from(said.stdout).toString(), said.exitCode], ['hello\n', 0]);
    assert.equal((await run(['sh', '-c', 'exit 4'])).exitCode, 4);
    await assert.rejects(run(['/does/not/exist']));
    await remove(pod);
    await assert.rejects(run(['true']));
  });

  it('shows, lists and removes images; a missing one is no error', async () => {
    const ref = 'localhost/contract:v1';
    const find = async () => (await on.images.imageStatus({ image: { image: ref } }, signal)).image;
    assert.equal(await find(), undefined);
    await on.importImage(ref);
    const image = await find();
    assert.ok(image !== undefined && image.size > 0 && image.repoTags.includes(ref));
    assert.ok((await on.images.listImages({}, signal)).images.some((i) => i.id === image.id));
    await on.images.removeImage({ image: { image: image.id } }, signal);
    assert.equal(await find(), undefined);
    await on.images.removeImage({ image: { image: ref } }, signal);
  });

  it('does not create a container from an image that is not there', async () => {
    const pod = await sandbox('no-image');
    const config = { metadata: { name: 'c', attempt: 0 }, image: { image: 'localhost/none:v1' }, linux: {} };
    const created = on.runtime.createContainer({ podSandboxId: pod.id, sandboxConfig: pod.config, config }, signal);
    await assert.rejects(created);
    await remove(pod);
  });

  it('tells what running containers use', async () => {
    const pod = await sandbox('uses');
    const id = await start(pod, 'c', ['sleep', '1000']);
    const { stats } = await on.runtime.listContainerStats({}, signal);
    const mine = stats.find((s) => s.attributes?.id === id);
    assert.deepEqual(
      [mine?.attributes?.metadata?.name, mine?.attributes?.labels['io.kubernetes.pod.uid']],
      ['c', pod.uid],
    );
    assert.ok((mine?.cpu?.timestamp ?? 0n) > 0n && mine?.memory?.workingSetBytes !== undefined);
    await remove(pod);
  });

  it('tells where images are kept', async () => {
    const { imageFilesystems } = await on.images.imageFsInfo({}, signal);
    assert.ok(existsSync(imageFilesystems[0]?.fsId?.mountpoint ?? ''));
  });

  if (!options.events) {
    it('says that it has no events', async () => {
      await assert.rejects(
        on.runtime.containerEvents(() => undefined, signal),
        (err) => isFault(err, 'unimplemented'),
      );
    });
    return;
  }

  if (options.crio === true) crioWays();

  it('sends events that agree with the status read after them', async () => {
    const seen: ContainerEventResponse[] = [];
    const stop = new AbortController();
    const stream = on.runtime.containerEvents((e) => seen.push(e), stop.signal);
    const pod = await sandbox('tells');
    let attempt = 0;
    // No answer says that the stream is open; the first event does.
    await until('events flow', async () => {
      await on.runtime.startContainer({ containerId: await create(pod, 'first', ['true'], attempt++) }, signal);
      return seen.length > 0;
    });
    const id = await start(pod, 'c', ['sh', '-c', 'sleep 0.2; exit 5']);
    const has = (type: ContainerEventType): Promise<boolean> =>
      Promise.resolve(seen.some((e) => e.containerId === id && e.containerEventType === type));
    await until('started event', () => has(ContainerEventType.CONTAINER_STARTED_EVENT));
    await until('stopped event', () => has(ContainerEventType.CONTAINER_STOPPED_EVENT));
    assert.deepEqual([await stateOf(id), (await statusOf(id)).exitCode], [CONTAINER_EXITED, 5]);
    assert.equal(seen.find((e) => e.containerId === id)?.podSandboxStatus?.metadata?.uid, pod.uid);
    await on.runtime.removeContainer({ containerId: id }, signal);
    await until('deleted event', () => has(ContainerEventType.CONTAINER_DELETED_EVENT));
    await remove(pod);
    stop.abort();
    await assert.rejects(stream);
  });

  /** Seen on CRI-O 1.36. */
  function crioWays(): void {
    it('keeps events for its first client', async () => {
      const pod = await sandbox('kept');
      const id = await start(pod, 'c', ['true']);
      await becomes(id, CONTAINER_EXITED);
      await remove(pod);
      const seen: ContainerEventResponse[] = [];
      const stop = new AbortController();
      const stream = on.runtime.containerEvents((e) => seen.push(e), stop.signal);
      await untilSeen(
        'old events',
        () => seen,
        (got) => got.some((e) => e.containerId === id),
      );
      stop.abort();
      await assert.rejects(stream);
    });

    it('tells of the containers of a sandbox that is going while the sandbox still counts as ready', async () => {
      const seen: ContainerEventResponse[] = [];
      const stop = new AbortController();
      const stream = on.runtime.containerEvents((e) => seen.push(e), stop.signal);
      const pod = await sandbox('going');
      const id = await startPolite(pod);
      const stopping = on.runtime.stopPodSandbox({ podSandboxId: pod.id }, signal);
      const ended = (of: string): ContainerEventResponse | undefined =>
        seen.find((e) => e.containerId === of && e.containerEventType === ContainerEventType.CONTAINER_STOPPED_EVENT);
      await stopping;
      await until('both ended', () => ended(id) !== undefined && ended(pod.id) !== undefined);
      assert.equal(ended(id)?.podSandboxStatus?.state, PodSandboxState.SANDBOX_READY);
      const order = [id, pod.id].map((of) => seen.findIndex((e) => e === ended(of)));
      assert.deepEqual(
        order,
        order.toSorted((a, b) => a - b),
        'the container first',
      );
      await remove(pod);
      stop.abort();
      await assert.rejects(stream);
    });

    it('has figures of its own: no limit is the largest number, swap has those of memory', async () => {
      const pod = await sandbox('figures');
      const id = await start(pod, 'c', ['sleep', '1000']);
      const { stats } = await on.runtime.listContainerStats({}, signal);
      const { memory, swap } = stats.find((s) => s.attributes?.id === id) ?? {};
      assert.ok((memory?.availableBytes?.value ?? 0) > 2 ** 62);
      assert.equal(swap?.swapUsageBytes?.value, memory?.workingSetBytes?.value);
      await remove(pod);
    });
  }
}
