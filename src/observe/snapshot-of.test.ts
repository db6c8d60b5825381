import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  NamespaceMode,
  PodSandboxState,
  ContainerState,
  Signal,
  type Container,
  type ContainerStatus,
  type PodSandbox,
  type PodSandboxStatus,
} from '../cri/gen/cri.ts';
import { podUid } from '../core/ids.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { newestOf } from '../core/snapshot.ts';
import { groupByPod, listingDiffers } from './listing.ts';
import { assembleSnapshot, observedContainer as containerOf, observedSandbox, observedState } from './snapshot-of.ts';

const uid = podUid('u');
const status = (more: Partial<PodSandboxStatus>): PodSandboxStatus => ({
  id: 's',
  metadata: { name: 'p', namespace: 'n', uid, attempt: 0 },
  state: PodSandboxState.SANDBOX_READY,
  createdAt: 1n,
  network: { ip: '10.0.0.1', additionalIps: [] },
  labels: {},
  annotations: {},
  runtimeHandler: '',
  ...more,
});

describe('sandbox addresses', () => {
  const extra = (...ips: string[]) => ({ ip: '10.0.0.1', additionalIps: ips.map((ip) => ({ ip })) });
  const hostNetwork = {
    namespaces: { options: { network: NamespaceMode.NODE, pid: 0, ipc: 0, targetId: '' } },
  } as const;
  const rows: readonly (readonly [string, Partial<PodSandboxStatus>, readonly string[]])[] = [
    ['one', {}, ['10.0.0.1']],
    ['both families', { network: extra('fd00::1') }, ['10.0.0.1', 'fd00::1']],
    ['one that is none spoils all', { network: extra('nonsense') }, []],
    ['none yet', { network: { ip: '', additionalIps: [] } }, []],
    ['not ready', { state: PodSandboxState.SANDBOX_NOTREADY }, []],
    ['host network', { linux: hostNetwork }, []],
    ['no network at all', { network: undefined }, []],
    ['namespaces nobody names', { linux: { namespaces: undefined } }, ['10.0.0.1']],
  ];
  for (const [name, more, ips] of rows) it(name, () => assert.deepEqual(observedSandbox(status(more)).ips, ips));
});

describe('assembleSnapshot', () => {
  const assemble = (statuses: PodSandboxStatus[], before: string[]) =>
    assembleSnapshot(
      { uid, name: 'p', namespace: 'n', sandboxes: statuses.map(observedSandbox), containers: [] },
      before,
      1,
    );
  const attempt = (id: string, n: number, state: PodSandboxState, ip: string) =>
    status({ id, metadata: { name: 'p', namespace: 'n', uid, attempt: n }, state, network: { ip, additionalIps: [] } });

  it('puts the newest attempt first and takes its address', () => {
    const old = attempt('old', 0, PodSandboxState.SANDBOX_NOTREADY, '');
    const now = attempt('now', 1, PodSandboxState.SANDBOX_READY, '10.0.0.9');
    const snapshot = assemble([old, now], ['10.0.0.1']);
    assert.deepEqual(
      snapshot.sandboxes.map((s) => s.id),
      ['now', 'old'],
    );
    assert.deepEqual(snapshot.ips, ['10.0.0.9']);
  });

  it('takes the later attempt for the newer one though the clock was set back between them', () => {
    const containers = [
      observedContainer('web', { id: 'first', attempt: 0, createdAt: 2000n }),
      observedContainer('web', { id: 'second', attempt: 1, createdAt: 1000n }),
    ];
    const snapshot = assembleSnapshot({ uid, name: 'p', namespace: 'n', sandboxes: [], containers }, [], 1);
    assert.equal(newestOf(snapshot, 'web')?.id, 'second');
  });

  it('keeps the address while no sandbox is ready', () => {
    const dead = attempt('dead', 0, PodSandboxState.SANDBOX_NOTREADY, '');
    assert.deepEqual(assemble([dead], ['10.0.0.1']).ips, ['10.0.0.1']);
  });
});

describe('listing', () => {
  const sandbox = (
    labels: Record<string, string>,
    state: PodSandboxState = PodSandboxState.SANDBOX_READY,
  ): PodSandbox => {
    const { id, metadata, createdAt } = status({});
    return { id, metadata, state, createdAt, labels, annotations: {}, runtimeHandler: '' };
  };
  const labels = { 'io.kubernetes.pod.uid': uid };
  const container = (state: 0 | 1 | 2 | 3, more: Record<string, string> = labels): Container => ({
    id: 'c',
    podSandboxId: 's',
    imageRef: '',
    state,
    createdAt: 1n,
    labels: more,
    annotations: {},
    imageId: '',
  });
  const read = assembleSnapshot(
    { uid, name: 'p', namespace: 'n', sandboxes: [observedSandbox(status({}))], containers: [] },
    [],
    1,
  );

  it('differs in states, in members and in existence', () => {
    const listed = (...args: Parameters<typeof groupByPod>) => groupByPod(...args).pods.get(uid);
    assert.equal(listingDiffers(listed([sandbox(labels)], []), read), false);
    assert.equal(listingDiffers(listed([sandbox(labels, PodSandboxState.SANDBOX_NOTREADY)], []), read), true);
    assert.equal(listingDiffers(listed([sandbox(labels)], [container(1)]), read), true);
    assert.equal(listingDiffers(undefined, read), true);
    assert.equal(listingDiffers(listed([sandbox(labels)], []), undefined), true);
    assert.equal(listingDiffers(undefined, undefined), false);
  });

  it('finds sandboxes of other tools by their metadata and leaves containers of nobody out', () => {
    const { pods, unlabelled } = groupByPod([sandbox({})], [container(1, {})]);
    assert.deepEqual([...unlabelled], [[uid, ['s']]]);
    assert.deepEqual([pods.get(uid)?.sandboxes.length, pods.get(uid)?.containers.length], [1, 0]);
  });
});

describe('a container', () => {
  const container = (more: Partial<ContainerStatus> = {}): ContainerStatus =>
    ({
      id: 'c',
      metadata: { name: 'from-metadata', attempt: 3 },
      state: ContainerState.CONTAINER_RUNNING,
      createdAt: 1n,
      startedAt: 2n,
      finishedAt: 0n,
      exitCode: 0,
      image: { image: 'busybox' },
      imageRef: 'ref',
      imageId: 'id',
      reason: '',
      message: '',
      labels: { 'io.kubernetes.container.name': 'from-label' },
      annotations: {},
      mounts: [],
      logPath: '/log',
      ...more,
    }) as unknown as ContainerStatus;
  const linux = { cpuShares: 0, cpuQuota: 0, cpuPeriod: 0, memoryLimitInBytes: 0 };
  const seen = (more: Partial<ContainerStatus>) => containerOf(container(more), 's');
  const resources = (more: Partial<typeof linux>) =>
    seen({ resources: { linux: { ...linux, ...more } } as unknown as ContainerStatus['resources'] }).resources;

  for (const [name, actual, expected] of [
    ['its label names it', () => seen({}).name, 'from-label'],
    [
      'what is mounted in it',
      () =>
        seen({
          mounts: [
            { containerPath: '/a', hostPath: '/h' },
            { containerPath: '/b', hostPath: '', image: { image: 'sha256:1' } },
            { containerPath: '/c', hostPath: '', image: { image: '' } },
          ] as unknown as ContainerStatus['mounts'],
        }).mounts,
      [
        { containerPath: '/a', hostPath: '/h' },
        { containerPath: '/b', hostPath: '', image: 'sha256:1' },
        { containerPath: '/c', hostPath: '' },
      ],
    ],
    ['its stop signal', () => seen({ stopSignal: Signal.SIGUSR1 }).stopSignal, 'SIGUSR1'],
    ['a real-time signal', () => seen({ stopSignal: Signal.SIGRTMINPLUS3 }).stopSignal, 'SIGRTMIN+3'],
    ['no signal of its own', () => seen({ stopSignal: Signal.RUNTIME_DEFAULT }).stopSignal, undefined],
    ['a signal of tomorrow', () => seen({ stopSignal: 99 as Signal }).stopSignal, undefined],
    ['its metadata does otherwise', () => seen({ labels: {} }).name, 'from-metadata'],
    ['nobody names it', () => seen({ labels: {}, metadata: undefined }).name, ''],
    ['its attempt', () => seen({}).attempt, 3],
    ['no attempt', () => seen({ metadata: undefined }).attempt, 0],
    ['its image', () => seen({}).image, 'busybox'],
    ['no image', () => seen({ image: undefined }).image, ''],
    ['no resources', () => seen({}).resources, undefined],
    ['resources that are not set', () => resources({}), {}],
    [
      'resources',
      () => resources({ cpuShares: 2, cpuQuota: -1, cpuPeriod: 100, memoryLimitInBytes: 5 }),
      { cpuShares: 2, cpuQuota: -1, cpuPeriod: 100, memoryLimitBytes: 5 },
    ],
    ['no user', () => seen({}).user, undefined],
    [
      'its user',
      () =>
        seen({ user: { linux: { uid: 1, gid: 2, supplementalGroups: [3] } } as unknown as ContainerStatus['user'] })
          .user,
      { uid: 1, gid: 2, supplementalGroups: [3] },
    ],
    ['a state of a later CRI', () => observedState(9 as ContainerState), 'unknown'],
  ] as const)
    it(name, () => assert.deepEqual(actual(), expected));

  for (const [annotations, expected] of [
    [{}, undefined],
    [{ 'kubernetes.io/config.source': 'api' }, undefined],
    [
      { 'kubernetes.io/config.source': 'file' },
      { 'kubernetes.io/config.source': 'file', 'kubernetes.io/config.seen': '' },
    ],
    [
      { 'kubernetes.io/config.source': 'http', 'kubernetes.io/config.seen': 'then' },
      { 'kubernetes.io/config.source': 'http', 'kubernetes.io/config.seen': 'then' },
    ],
  ] as const)
    it(`marks of a static pod: ${JSON.stringify(annotations)}`, () =>
      assert.deepEqual(observedSandbox(status({ annotations })).annotations, expected));
});

describe('order of sandboxes', () => {
  const made = (id: string, createdAt: bigint, metadata: PodSandboxStatus['metadata']) =>
    observedSandbox(status({ id, createdAt, metadata }));
  it('of one attempt: the younger first; without an attempt it is the first', () => {
    const sandboxes = [
      made('a', 1n, undefined),
      made('b', 3n, undefined),
      made('c', 2n, undefined),
      made('d', 2n, undefined),
    ];
    const { sandboxes: ordered, ips } = assembleSnapshot(
      { uid, name: 'p', namespace: 'n', sandboxes, containers: [] },
      [],
      1,
    );
    assert.deepEqual(
      ordered.map((s) => [s.id, s.attempt]),
      [
        ['b', 0],
        ['c', 0],
        ['d', 0],
        ['a', 0],
      ],
    );
    assert.deepEqual(ips, ['10.0.0.1']);
  });
});
