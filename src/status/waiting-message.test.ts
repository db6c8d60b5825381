import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { ContainerState, ContainerStatus, Pod } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { StatusStore } from './status-store.ts';

const pod: Pod = { metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: [{ name: 'app' }] } };
const statusOf = (name: string, state: ContainerState): ContainerStatus => ({
  name,
  state,
  lastState: {},
  ready: false,
  restartCount: 0,
  image: '',
  imageID: '',
});

describe('the message of a container that waits', () => {
  const setup = () => {
    const changes: string[] = [];
    const store = new StatusStore({
      clock: new ManualClock(),
      log: silentLogger,
      onChange: (uid) => void changes.push(uid),
    });
    return { store, changes };
  };

  for (const [name, state, expected] of [
    [
      'says what for, before it is created',
      { waiting: { reason: 'ContainerCreating' } },
      { reason: 'ContainerCreating', message: 'half' },
    ],
    [
      'also behind init containers',
      { waiting: { reason: 'PodInitializing' } },
      { reason: 'PodInitializing', message: 'half' },
    ],
    [
      'leaves a failure its own',
      { waiting: { reason: 'ErrImagePull', message: 'no' } },
      { reason: 'ErrImagePull', message: 'no' },
    ],
    ['is none of one that runs', { running: { startedAt: null } }, undefined],
  ] as const)
    it(name, () => {
      const { store, changes } = setup();
      store.set(pod, { phase: 'Pending', containerStatuses: [statusOf('app', state), statusOf('other', state)] });
      store.setWaitingMessage(pod, 'app', 'half');
      const [app, other] = store.statusOf(podUid('u'))?.containerStatuses ?? [];
      assert.deepEqual(app?.state.waiting, expected);
      assert.deepEqual(other?.state, state);
      store.setWaitingMessage(pod, 'app', 'half');
      assert.equal(changes.length, expected !== undefined && expected.message === 'half' ? 2 : 1);
    });

  it('shares 64 KiB with those of the other containers, and the message of the pod has as much', () => {
    const { store } = setup();
    const message = '€'.repeat(100_000);
    const long = { waiting: { reason: 'CreateContainerConfigError', message } };
    const containerStatuses = [statusOf('app', long), statusOf('other', long)];
    const status = store.set(pod, { phase: 'Pending', message, containerStatuses });
    assert.deepEqual(
      [status.message, ...(status.containerStatuses ?? []).map((s) => s.state.waiting?.message)],
      [21_845, 10_922, 10_922].map((count) => '€'.repeat(count)),
    );
    assert.equal(status.containerStatuses?.[0]?.state.waiting?.reason, 'CreateContainerConfigError');
  });

  it('is nothing for a pod that nobody has said anything of', () => {
    const { store, changes } = setup();
    store.setWaitingMessage(pod, 'app', 'half');
    assert.deepEqual([changes, store.statusOf(podUid('u'))], [[], undefined]);
  });
});
