// Observed instances → container statuses, row by row: what was seen, what was said before, what is shown.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Container, ContainerKind, ContainerStatus, Pod } from '../core/pod.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { emptySnapshot, type ObservedContainer } from '../core/snapshot.ts';
import { containerStatuses, type ContainerStatusInput } from './container-status.ts';

const podOf = (spec: Partial<Pod['spec']> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', ...metadata },
  spec: { containers: [{ name: 'c' }], ...spec },
});
const seen = (more: Parameters<typeof observedContainer>[1] = {}, name = 'c'): ObservedContainer =>
  observedContainer(name, { id: 'new', ...more });
const old = (more: Partial<ContainerStatus>): ContainerStatus => ({
  name: 'c',
  state: {},
  lastState: {},
  ready: false,
  restartCount: 2,
  image: 'i',
  imageID: '',
  ...more,
});
const ended = (exitCode: number): ContainerStatus['state'] => ({
  terminated: { exitCode, startedAt: null, finishedAt: null },
});
const runs: ContainerStatus['state'] = { running: { startedAt: 'x' } };

type Given = {
  readonly kind?: ContainerKind;
  readonly container?: Partial<Container>;
  readonly pod?: Pod;
  readonly seen?: readonly ObservedContainer[];
  readonly before?: ContainerStatus;
} & Partial<
  Pick<
    ContainerStatusInput,
    | 'startErrors'
    | 'terminationMessage'
    | 'restartingAll'
    | 'deviceHealth'
    | 'recursiveReadOnly'
    | 'stopSignals'
    | 'imageDigests'
  >
>;

function status({ kind = 'main', container, pod = podOf(), before, ...given }: Given): ContainerStatus {
  const [first] = containerStatuses(kind, [{ name: 'c', ...container }], {
    pod,
    snapshot: { ...emptySnapshot(podUid('u'), 'p', 'n'), containers: given.seen ?? [] },
    runtimeName: 'r',
    previous: before === undefined ? [] : [before],
    startErrors: given.startErrors ?? (() => undefined),
    terminationMessage: given.terminationMessage ?? (() => ''),
    actuated: { containers: new Map() },
    restartingAll: given.restartingAll ?? false,
    ...(given.deviceHealth === undefined ? {} : { deviceHealth: given.deviceHealth }),
    ...(given.stopSignals === undefined ? {} : { stopSignals: given.stopSignals }),
    ...(given.imageDigests === undefined ? {} : { imageDigests: given.imageDigests }),
    ...(given.recursiveReadOnly === undefined ? {} : { recursiveReadOnly: given.recursiveReadOnly }),
  });
  assert.ok(first !== undefined);
  return first;
}

const brief = ({ state, lastState, restartCount }: ContainerStatus): string => {
  const of = (s: ContainerStatus['state']): string =>
    s.running !== undefined
      ? 'running'
      : s.terminated !== undefined
        ? `ended ${s.terminated.exitCode} ${s.terminated.reason ?? ''}`.trim()
        : s.waiting !== undefined
          ? `waiting ${s.waiting.reason ?? ''}`.trim()
          : 'nothing';
  return `${of(state)}, before: ${of(lastState)}, ${restartCount}`;
};

const exited = seen({ state: 'exited', exitCode: 1, reason: 'Error' });
const error = () => ({ reason: 'ErrImagePull', message: 'no' });
const states: readonly [string, Given, string][] = [
  ['not there yet', {}, 'waiting ContainerCreating, before: nothing, 0'],
  [
    'not there yet, with init containers',
    { pod: podOf({ initContainers: [{ name: 'i' }] }) },
    'waiting PodInitializing, before: nothing, 0',
  ],
  ['created', { seen: [seen({ state: 'created' })] }, 'waiting, before: nothing, 0'],
  ['running', { seen: [seen()] }, 'running, before: nothing, 0'],
  ['ended', { seen: [exited] }, 'ended 1 Error, before: nothing, 0'],
  [
    'running, with its earlier instance',
    { seen: [seen(), seen({ id: 'old', state: 'exited', exitCode: 3, reason: 'Error' })] },
    'running, before: ended 3 Error, 0',
  ],
  [
    'running again, the earlier instance is gone',
    { seen: [seen()], before: old({ state: ended(4), containerID: 'r://old' }) },
    'running, before: ended 4, 3',
  ],
  [
    'still the same instance',
    { seen: [seen()], before: old({ state: runs, containerID: 'r://new' }) },
    'running, before: nothing, 2',
  ],
  ['in a state nobody knows', { seen: [seen({ state: 'unknown' })] }, 'waiting, before: nothing, 0'],
  [
    'lost while it ran',
    { seen: [seen({ state: 'unknown' })], before: old({ state: runs }) },
    'ended 137 ContainerStatusUnknown, before: nothing, 3',
  ],
  [
    'lost while all start over',
    { seen: [seen({ state: 'unknown' })], before: old({ state: runs }), restartingAll: true },
    'ended 137 RestartingAllContainers, before: nothing, 3',
  ],
  ['gone after its end', { before: old({ state: ended(0) }) }, 'ended 0, before: nothing, 2'],
  [
    'gone while it ran',
    { before: old({ state: runs }) },
    'waiting ContainerCreating, before: ended 137 ContainerStatusUnknown, 3',
  ],
  [
    'gone while it ran, with the pod',
    { before: old({ state: runs }), pod: podOf({}, { deletionTimestamp: 'x' }) },
    'waiting ContainerCreating, before: ended 137 ContainerStatusUnknown, 2',
  ],
  [
    'removed because all start over, while it ran',
    { before: old({ state: runs }), restartingAll: true },
    'waiting RestartingAllContainers, before: ended 137 RestartingAllContainers, 3',
  ],
  [
    'removed because all start over, after its end',
    { before: old({ state: ended(1) }), restartingAll: true },
    'waiting RestartingAllContainers, before: ended 137 RestartingAllContainers, 3',
  ],
  [
    'an init container that nobody sees beside a main one',
    {
      kind: 'init',
      pod: podOf({ initContainers: [{ name: 'c' }], containers: [{ name: 'm' }] }),
      seen: [seen({}, 'm')],
    },
    'ended 0 Completed, before: nothing, 0',
  ],
  ['could not start', { startErrors: error }, 'waiting ErrImagePull, before: nothing, 0'],
  ['could not start again', { seen: [exited], startErrors: error }, 'waiting ErrImagePull, before: ended 1 Error, 0'],
  [
    'will not start again',
    { seen: [exited], startErrors: error, pod: podOf({ restartPolicy: 'Never' }) },
    'ended 1 Error, before: nothing, 0',
  ],
  [
    'is not started any more',
    { seen: [exited], startErrors: error, pod: podOf({}, { deletionTimestamp: 'x' }) },
    'ended 1 Error, before: nothing, 0',
  ],
  ['runs in spite of an error', { seen: [seen()], startErrors: error }, 'running, before: nothing, 0'],
  [
    'an init container that is done',
    { kind: 'init', seen: [seen({ state: 'exited', exitCode: 0, reason: 'Completed' })], startErrors: error },
    'ended 0 Completed, before: nothing, 0',
  ],
  [
    'a sidecar that ended well, while it waits for its next start',
    {
      kind: 'init',
      container: { restartPolicy: 'Always' },
      seen: [seen({ state: 'exited', exitCode: 0, reason: 'Completed' })],
      startErrors: error,
    },
    'ended 0 Completed, before: nothing, 0',
  ],
  [
    'a sidecar that failed, while it waits for its next start',
    { kind: 'init', container: { restartPolicy: 'Always' }, seen: [exited], startErrors: error },
    'waiting ErrImagePull, before: ended 1 Error, 0',
  ],
  [
    'restarts as recorded',
    { seen: [seen({ annotations: { 'io.kubernetes.container.restartCount': '7' } })], before: old({}) },
    'running, before: nothing, 7',
  ],
];

const readOnly = { mountPath: '/m', readOnly: true };
const recursive: Partial<Container> = {
  volumeMounts: [
    { name: 'a', ...readOnly, recursiveReadOnly: 'Disabled' },
    { name: 'b', ...readOnly, recursiveReadOnly: 'IfPossible' },
    { name: 'c', ...readOnly, recursiveReadOnly: 'Enabled' },
    { name: 'd', ...readOnly, recursiveReadOnly: 'IfPossible', mountPropagation: 'HostToContainer' },
  ],
};
const able = (handler: string): boolean => handler === '';
const withImages = {
  pod: podOf({
    volumes: [
      { name: 'i', image: { reference: 'r' } },
      { name: 'e', emptyDir: {} },
    ],
  }),
  container: {
    volumeMounts: [
      { name: 'i', mountPath: '/a' },
      { name: 'i', mountPath: 'b/' },
      { name: 'e', mountPath: '/e' },
    ],
  },
  seen: [
    seen({
      mounts: [
        { containerPath: '/a', hostPath: '', image: 'sha256:1' },
        { containerPath: '/b', hostPath: '', image: 'sha256:2' },
        { containerPath: '/e', hostPath: '/h' },
      ],
    }),
  ],
};
const images = (s: ContainerStatus): string =>
  (s.volumeMounts ?? []).map((m) => m.volumeStatus?.image?.imageRef ?? '-').join(' ');
const modes = (s: ContainerStatus): string => (s.volumeMounts ?? []).map((m) => m.recursiveReadOnly?.[0]).join('');

const fields: readonly [string, Given, (status: ContainerStatus) => unknown, unknown][] = [
  [
    'the message of the runtime and of the container',
    { seen: [seen({ state: 'exited', message: 'OOM' })], terminationMessage: () => 'bye' },
    (s) => s.state.terminated?.message,
    'OOM: bye',
  ],
  [
    'the message of the container alone',
    { seen: [seen({ state: 'exited', message: '' })], terminationMessage: () => 'bye' },
    (s) => s.state.terminated?.message,
    'bye',
  ],
  ['no message', { seen: [exited] }, (s) => 'message' in (s.state.terminated ?? {}), false],
  [
    'a reason without a message',
    { startErrors: () => ({ reason: 'R', message: '' }) },
    (s) => s.state.waiting,
    { reason: 'R' },
  ],
  ['an ephemeral container is not said to have started', { kind: 'ephemeral' }, (s) => 'started' in s, false],
  ['others are', {}, (s) => s.started, false],
  ['no user', { seen: [seen({})] }, (s) => s.user, undefined],
  [
    'its user',
    { seen: [seen({ user: { uid: 1, gid: 2, supplementalGroups: [] } })] },
    (s) => s.user,
    { linux: { uid: 1, gid: 2 } },
  ],
  [
    'its groups',
    { seen: [seen({ user: { uid: 1, gid: 2, supplementalGroups: [3] } })] },
    (s) => s.user,
    { linux: { uid: 1, gid: 2, supplementalGroups: [3] } },
  ],
  [
    'mounts',
    {
      container: {
        volumeMounts: [
          { name: 'a', mountPath: '/a' },
          { name: 'b', mountPath: '/b', readOnly: true },
        ],
      },
    },
    (s) => s.volumeMounts,
    [
      { name: 'a', mountPath: '/a' },
      { name: 'b', mountPath: '/b', readOnly: true, recursiveReadOnly: 'Disabled' },
    ],
  ],
  ['image volumes, without their images', { ...withImages }, images, '- - -'],
  ['image volumes, with what was mounted', { ...withImages, imageDigests: true }, images, 'sha256:1 sha256:2 -'],
  [
    'image volumes of the next instance',
    {
      ...withImages,
      imageDigests: true,
      before: old({
        containerID: 'r://old',
        volumeMounts: [{ name: 'i', mountPath: '/a', volumeStatus: { image: { imageRef: 'sha256:0' } } }],
      }),
    },
    images,
    'sha256:1',
  ],
  [
    'image volumes of a runtime that does not tell',
    { ...withImages, imageDigests: true, seen: [seen()] },
    images,
    '- - -',
  ],
  ['recursive mounts, of a handler that makes them', { container: recursive, recursiveReadOnly: able }, modes, 'DEED'],
  [
    'the same, told otherwise while the handler was not known',
    {
      seen: [seen()],
      container: recursive,
      recursiveReadOnly: able,
      before: old({ volumeMounts: [{ name: 'a', mountPath: '/a', readOnly: true, recursiveReadOnly: 'Disabled' }] }),
    },
    modes,
    'DEED',
  ],
  [
    'the same, of a handler that is not known yet',
    { container: recursive, pod: podOf({ runtimeClassName: 'k' }), recursiveReadOnly: able },
    modes,
    'DDDD',
  ],
  ['the same, of a handler that cannot', { container: recursive, recursiveReadOnly: () => false }, modes, 'DDDD'],
  [
    'mounts as they were told before',
    { seen: [seen()], before: old({ containerID: 'r://new', volumeMounts: [{ name: 'x', mountPath: '/x' }] }) },
    (s) => s.volumeMounts,
    [{ name: 'x', mountPath: '/x' }],
  ],
  ['its stop signal', { seen: [seen({ stopSignal: 'SIGUSR1' })], stopSignals: true }, (s) => s.stopSignal, 'SIGUSR1'],
  ['its stop signal, not to be told', { seen: [seen({ stopSignal: 'SIGUSR1' })] }, (s) => s.stopSignal, undefined],
  ['devices nobody asks for', { seen: [seen()] }, (s) => s.allocatedResourcesStatus, undefined],
  ['no devices', { seen: [seen()], deviceHealth: [() => undefined] }, (s) => s.allocatedResourcesStatus, undefined],
  [
    'its devices',
    { seen: [seen()], deviceHealth: [() => [{ name: 'd', resources: [] }]] },
    (s) => s.allocatedResourcesStatus,
    [{ name: 'd', resources: [] }],
  ],
];

describe('a container', () => {
  for (const [name, given, expected] of states) it(name, () => assert.equal(brief(status(given)), expected));
  for (const [name, given, read, expected] of fields) it(name, () => assert.deepEqual(read(status(given)), expected));

  for (const [kind, order] of [
    ['main', ['a', 'b']],
    ['init', ['b', 'a']],
  ] as const)
    it(`${kind} containers are listed ${order.join(', ')}`, () => {
      const statuses = containerStatuses(kind, [{ name: 'b' }, { name: 'a' }], {
        pod: podOf(),
        snapshot: emptySnapshot(podUid('u'), 'p', 'n'),
        runtimeName: 'r',
        previous: [],
        startErrors: () => undefined,
        terminationMessage: () => '',
        actuated: { containers: new Map() },
        restartingAll: false,
      });
      assert.deepEqual(
        statuses.map((s) => s.name),
        order,
      );
    });
});
