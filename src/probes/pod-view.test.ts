import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, ContainerStatus, Pod, PodStatus } from '../core/pod.ts';
import { isOlderThanKubelet, viewOf } from './pod-view.ts';

const status = (more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name: 'c',
  state: { running: { startedAt: '2026-01-01T00:00:10Z' } },
  lastState: {},
  ready: true,
  restartCount: 0,
  image: '',
  imageID: '',
  containerID: 'containerd://abc',
  ...more,
});
const AT = Date.parse('2026-01-01T00:00:10Z');

function view(
  more: {
    readonly container?: Partial<Container>;
    readonly spec?: Partial<Pod['spec']>;
    readonly deleted?: true;
    readonly status?: PodStatus;
    readonly startedAt?: number;
    readonly kubeletStartedMs?: number;
  } = {},
) {
  const container: Container = { name: 'c', ...more.container };
  const pod: Pod = {
    metadata: { name: 'p', ...(more.deleted === true && { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
    spec: { containers: [container], ...more.spec },
  };
  return viewOf(pod, container, more.status ?? { containerStatuses: [status()] }, {
    kubeletStartedMs: more.kubeletStartedMs ?? 0,
    startedAt: () => more.startedAt,
  });
}
type View = ReturnType<typeof view>;

const rows: readonly [string, Parameters<typeof view>[0], (view: View) => unknown, unknown][] = [
  ['no status yet', { status: {} }, (v) => v.container, undefined],
  ['of another container', { status: { containerStatuses: [status({ name: 'd' })] } }, (v) => v.container, undefined],
  ['its id without the runtime', {}, (v) => v.container?.containerId, 'abc'],
  [
    'no id yet',
    { status: { containerStatuses: [status({ containerID: '' })] } },
    (v) => v.container?.containerId,
    undefined,
  ],
  ['running', {}, (v) => [v.container?.running, v.container?.terminated], [true, false]],
  [
    'ended',
    {
      status: {
        containerStatuses: [status({ state: { terminated: { exitCode: 0, startedAt: null, finishedAt: null } } })],
      },
    },
    (v) => [v.container?.running, v.container?.terminated],
    [false, true],
  ],
  ['started in whole seconds', {}, (v) => v.container?.startedAtMs, AT],
  ['started to the millisecond where known', { startedAt: AT + 345 }, (v) => v.container?.startedAtMs, AT + 345],
  ['started after the kubelet', { kubeletStartedMs: AT - 1 }, (v) => v.container?.olderThanKubelet, false],
  ['started before the kubelet', { kubeletStartedMs: AT + 1 }, (v) => v.container?.olderThanKubelet, true],
  ['started', { status: { containerStatuses: [status({ started: true })] } }, (v) => v.container?.started, true],
  ['not started', {}, (v) => v.container?.started, false],
  ['restarts by default', {}, (v) => v.container?.mayRestart, true],
  ['does not restart', { spec: { restartPolicy: 'Never' } }, (v) => v.container?.mayRestart, false],
  [
    'its own policy counts',
    { spec: { restartPolicy: 'Always' }, container: { restartPolicy: 'Never' } },
    (v) => v.container?.mayRestart,
    false,
  ],
  [
    'a rule may have it restart',
    {
      spec: { restartPolicy: 'Never' },
      container: { restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }] },
    },
    (v) => v.container?.mayRestart,
    true,
  ],
  ['a main container is no sidecar', { container: { restartPolicy: 'Always' } }, (v) => v.container?.sidecar, false],
  [
    'a sidecar',
    {
      container: { restartPolicy: 'Always' },
      spec: { containers: [], initContainers: [{ name: 'c', restartPolicy: 'Always' }] },
      status: { initContainerStatuses: [status()] },
    },
    (v) => v.container?.sidecar,
    true,
  ],
  ['the pod is over', { status: { phase: 'Failed' } }, (v) => v.over, true],
  ['the pod is being deleted', { deleted: true }, (v) => v.beingDeleted, true],
  ['the pod stays', {}, (v) => [v.over, v.beingDeleted], [false, false]],
];

describe('what a probe knows of its pod', () => {
  for (const [name, given, read, expected] of rows) it(name, () => assert.deepEqual(read(view(given)), expected));

  for (const [started, kubelet, expected] of [
    [0, 5, false],
    [4, 5, true],
    [5, 5, false],
  ] as const)
    it(`a container of ${started}, a kubelet of ${kubelet}`, () =>
      assert.equal(isOlderThanKubelet(started, kubelet), expected));
});
