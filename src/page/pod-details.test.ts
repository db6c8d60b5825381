// What a pod's own page shows, row by row: conditions, containers, probes, volumes, events, differences.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { containerId, podUid, sandboxId } from '../core/ids.ts';
import type { KubeEvent } from '../core/node.ts';
import type { Container, ContainerState, ContainerStatus, Pod, PodStatus } from '../core/pod.ts';
import { emptySnapshot, type ObservedContainer, type PodSnapshot } from '../core/snapshot.ts';
import {
  compared,
  conditionViews,
  goodOfPod,
  containerViews,
  eventViews,
  probeViews,
  probeWords,
  volumeViews,
} from './pod-details.ts';

const AT = '2026-01-01T00:00:00Z';
const AT_MS = Date.UTC(2026, 0, 1);

const status = (state: ContainerState, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name: 'main',
  state,
  lastState: {},
  ready: false,
  restartCount: 0,
  image: 'busybox:1',
  imageID: '',
  ...more,
});
const RUNNING: ContainerState = { running: { startedAt: AT } };

const podWith = (container: Partial<Container>, podStatus?: PodStatus, spec: Partial<Pod['spec']> = {}): Pod => ({
  metadata: { name: 'web', uid: 'u' },
  spec: { containers: [{ name: 'main', ...container }], ...spec },
  ...(podStatus === undefined ? {} : { status: podStatus }),
});

describe('conditions', () => {
  const goodWhen = (type: string): 'True' | 'False' => (type === 'Ready' ? 'True' : 'False');
  for (const [condition, expected] of [
    [
      { type: 'Ready', status: 'True' },
      { type: 'Ready', status: 'True', tone: 'ok' },
    ],
    [
      { type: 'Ready', status: 'Unknown', reason: '', message: '', lastTransitionTime: null },
      { type: 'Ready', status: 'Unknown', tone: 'warn' },
    ],
    [
      { type: 'DiskPressure', status: 'True', reason: 'Full', message: 'no room', lastTransitionTime: AT },
      { type: 'DiskPressure', status: 'True', tone: 'bad', reason: 'Full', message: 'no room', sinceMs: AT_MS },
    ],
  ] as const)
    it(`${condition.type} ${condition.status} is ${expected.tone}`, () =>
      assert.deepEqual(conditionViews([condition], goodWhen), [expected]));

  it('of a pod: what says that something is wrong is good when it is false', () => {
    for (const [type, good] of [
      ['Ready', 'True'],
      ['example.com/gate', 'True'],
      ['kubelet-ts/WhyNotReady', 'False'],
      ['DisruptionTarget', 'False'],
      ['PodResizePending', 'False'],
    ] as const)
      assert.equal(goodOfPod(type), good, type);
  });
});

describe('containers', () => {
  const ended = (exitCode: number, reason?: string, message?: string): ContainerState => ({
    terminated: {
      exitCode,
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
      startedAt: AT,
      finishedAt: AT,
    },
  });
  for (const [name, its, expected] of [
    ['running and ready', status(RUNNING, { ready: true }), ['Running', 'ok', undefined]],
    ['running, not ready', status(RUNNING), ['Running', 'warn', undefined]],
    ['ended well', status(ended(0, 'Completed')), ['Completed', 'idle', undefined]],
    ['ended badly', status(ended(1, undefined, 'boom')), ['Ended', 'bad', 'boom']],
    ['waiting without a reason', status({ waiting: {} }), ['Waiting', 'busy', undefined]],
    [
      'waiting with an empty message',
      status({ waiting: { reason: 'ContainerCreating', message: '' } }),
      ['ContainerCreating', 'busy', undefined],
    ],
    [
      'backing off',
      status({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } }),
      ['CrashLoopBackOff', 'bad', 'back-off 10s'],
    ],
    ['in no state', status({}), ['Waiting', 'busy', undefined]],
  ] as const)
    it(`${name}: ${expected[0]}, ${expected[1]}`, () => {
      const [view] = containerViews(podWith({}, { containerStatuses: [its] }), () => undefined);
      assert.deepEqual([view?.state, view?.tone, view?.message], expected);
    });

  it('show identity, exits, use and limits where they are known', () => {
    const its = status(RUNNING, {
      ready: true,
      restartCount: 2,
      imageID: 'sha256:1',
      containerID: 'containerd://c',
      lastState: ended(137, 'OOMKilled'),
    });
    const container = { image: 'busybox:1', resources: { limits: { cpu: '250m', memory: '1Ki' } } };
    const use = { cpuCores: 0.5, memoryBytes: 9 };
    assert.deepEqual(
      containerViews(podWith(container, { containerStatuses: [its] }), () => use),
      [
        {
          name: 'main',
          kind: 'main',
          image: 'busybox:1',
          state: 'Running',
          tone: 'ok',
          ready: true,
          restarts: 2,
          hasLogs: true,
          imageId: 'sha256:1',
          id: 'containerd://c',
          startedAtMs: AT_MS,
          lastExit: 'OOMKilled (137)',
          lastExitMs: AT_MS,
          cpuCores: 0.5,
          memoryBytes: 9,
          cpuLimitCores: 0.25,
          memoryLimitBytes: 1024,
        },
      ],
    );
  });

  it('have logs once they ran, also when only an earlier one did', () => {
    const logs = (its: ContainerStatus): boolean | undefined =>
      containerViews(podWith({}, { containerStatuses: [its] }), () => ({}))[0]?.hasLogs;
    assert.equal(logs(status({ waiting: {} })), false);
    assert.equal(logs(status({ waiting: {} }, { lastState: ended(1) })), true);
    assert.equal(logs(status(ended(0), { containerID: 'containerd://c' })), true);
  });

  it('that ended say how', () => {
    const [view] = containerViews(podWith({}, { containerStatuses: [status(ended(3))] }), () => undefined);
    assert.equal(view?.exit, 'Exited (3)');
  });
});

describe('probes', () => {
  for (const [probe, words] of [
    [{ httpGet: { port: 80 } }, 'GET http://:80/'],
    [{ httpGet: { port: 80, scheme: 'HTTPS', host: 'h', path: '/x' } }, 'GET https://h:80/x'],
    [{ tcpSocket: { port: 1, host: 'h' } }, 'connect to h:1'],
    [{ grpc: { port: 1, service: 'db' } }, 'gRPC health :1 db'],
    [{ exec: {} }, 'exec '],
    [{}, 'exec '],
  ] as const)
    it(`${JSON.stringify(probe)} is "${words}"`, () => assert.equal(probeWords(probe), words));

  it('come with the period in force and their runs', () => {
    const pod = podWith({
      startupProbe: { tcpSocket: { port: 1 } },
      livenessProbe: { tcpSocket: { port: 2 }, periodSeconds: 3 },
    });
    const views = probeViews(pod, (container, type) => [{ atMs: 1, ok: true, text: `${container} ${type}` }] as never);
    assert.deepEqual(
      views.map((v) => [v.container, v.type, v.what, v.periodSeconds, v.runs.length]),
      [
        ['main', 'startup', 'connect to :1', 10, 1],
        ['main', 'liveness', 'connect to :2', 3, 1],
      ],
    );
  });
});

describe('volumes', () => {
  it('name what they refer to, their use and their state', () => {
    const pod = podWith({}, undefined, {
      volumes: [
        { name: 'a', configMap: { name: 'settings' } },
        { name: 'b', persistentVolumeClaim: { claimName: 'data' } },
        { name: 'c', hostPath: { path: '/srv' } },
        { name: 'd' },
        { name: 'e', configMap: { name: '' } },
      ],
    });
    const use = new Map([
      ['a', { usedBytes: 1, capacityBytes: 2 }],
      ['b', {}],
    ]);
    assert.deepEqual(volumeViews(pod, { mounted: new Set(['a']), waiting: new Map(), use }), [
      { name: 'a', kind: 'configMap settings', tone: 'ok', usedBytes: 1, capacityBytes: 2 },
      { name: 'b', kind: 'persistentVolumeClaim data', tone: 'idle' },
      { name: 'c', kind: 'hostPath /srv', tone: 'idle' },
      { name: 'd', kind: 'unknown', tone: 'idle' },
      { name: 'e', kind: 'configMap', tone: 'idle' },
    ]);
    assert.deepEqual(volumeViews(podWith({}), { mounted: new Set(), waiting: new Map(), use }), []);
  });
});

describe('events', () => {
  it('are shown newest first, with what they leave out filled in', () => {
    const bare: KubeEvent = { metadata: { name: 'e' }, involvedObject: {} };
    const whole: KubeEvent = {
      metadata: { name: 'f' },
      involvedObject: { fieldPath: 'spec.containers{main}' },
      type: 'Warning',
      reason: 'Failed',
      message: 'no',
      count: 3,
      firstTimestamp: AT,
    };
    assert.deepEqual(eventViews([bare, whole]), [
      { atMs: AT_MS, type: 'Warning', reason: 'Failed', message: 'no', count: 3, about: 'spec.containers{main}' },
      { atMs: 0, type: 'Normal', reason: '', message: '', count: 1 },
    ]);
  });
});

describe('spec and node compared', () => {
  /** Only what differs. */
  const differences = (pod: Pod, snapshot: PodSnapshot | undefined) =>
    compared(pod, snapshot)
      .filter(({ same }) => !same)
      .map(({ what, wanted, running }) => ({ what, wanted, running }));
  const seen = (more: Partial<ObservedContainer>): PodSnapshot => ({
    ...emptySnapshot(podUid('u'), 'web', 'ns'),
    containers: [
      {
        id: containerId('0123456789abcdef'),
        name: 'main',
        sandboxId: sandboxId('s'),
        attempt: 0,
        state: 'running',
        image: 'x',
        imageRef: 'docker.io/library/busybox@sha256:aa',
        ...more,
      } as ObservedContainer,
    ],
  });
  const images = (wanted: string | undefined, running: string): readonly string[] =>
    differences(
      podWith(wanted === undefined ? {} : { image: wanted }, {
        containerStatuses: [status(RUNNING, { image: running })],
      }),
      seen({}),
    ).map((d) => `${d.what} ${d.running}`);
  for (const [name, wanted, running, expected] of [
    ['the same tag', 'busybox:1', 'docker.io/library/busybox:1', []],
    ['the tag nobody wrote', 'busybox', 'docker.io/library/busybox:latest', []],
    ['another tag', 'busybox:2', 'docker.io/library/busybox:1', ['main: image docker.io/library/busybox:1']],
    ['an image without a name', 'busybox:2', 'sha256:1', []],
    ['the digest in force', 'busybox@sha256:aa', 'docker.io/library/busybox:1', []],
    ['another digest', 'busybox@sha256:bb', 'docker.io/library/busybox:1', ['main: image docker.io/library/busybox:1']],
    ['another digest shown by its own name', 'busybox@sha256:bb', 'busybox@sha256:bb', []],
    ['no image in the spec', undefined, 'docker.io/library/busybox:1', ['main: image docker.io/library/busybox:1']],
  ] as const)
    it(`image: ${name}`, () => assert.deepEqual(images(wanted, running), expected));

  it('a container that is not in the spec is told, one that ended is not', () => {
    const pod = podWith({}, { containerStatuses: [status({ waiting: {} })] });
    assert.deepEqual(differences(pod, seen({ name: 'old' })), [
      { what: 'old: container', wanted: 'not in the spec', running: '0123456789ab' },
    ]);
    assert.deepEqual(differences(pod, seen({ name: 'old', state: 'exited' })), []);
  });

  it('what differs comes first; an image that is not known yet is no difference', () => {
    const pod = podWith(
      { image: 'busybox:1', resources: { requests: { cpu: '1' } } },
      { containerStatuses: [status(RUNNING, { image: '', resources: { requests: { cpu: '2' } } })] },
    );
    assert.deepEqual(
      compared(pod, undefined).map(({ what, same }) => [what, same]),
      [
        ['main: cpu request', false],
        ['main: image', true],
      ],
    );
  });

  it('requests that are in force in another notation are the same', () => {
    const pod = podWith(
      { image: 'busybox:1', resources: { requests: { cpu: '0.1', memory: '1Mi' }, limits: { 'a/b': '1' } } },
      { containerStatuses: [status(RUNNING, { resources: { requests: { cpu: '100m', memory: '2Mi' } } })] },
    );
    assert.deepEqual(differences(pod, undefined), [{ what: 'main: memory request', wanted: '1Mi', running: '2Mi' }]);
  });
});
