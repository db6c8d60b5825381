import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerStatus, Pod } from '../core/pod.ts';
import { logContainerOf } from './log-container.ts';

const status = (more: Partial<ContainerStatus>): ContainerStatus => ({
  name: 'a',
  state: {},
  lastState: {},
  ready: false,
  restartCount: 0,
  image: '',
  imageID: '',
  ...more,
});
const ended = (containerID?: string) => ({
  terminated: { exitCode: 0, startedAt: null, finishedAt: null, ...(containerID === undefined ? {} : { containerID }) },
});
const waiting = (reason?: string) => ({ state: { waiting: reason === undefined ? {} : { reason } } });

const rows: readonly (readonly [string, ContainerStatus | undefined, boolean, string])[] = [
  ['nobody knows it', undefined, false, 'container "a" in pod "p" is not available'],
  ['it runs', status({ state: { running: { startedAt: null } }, containerID: 'cri://1' } as never), false, '1'],
  ['it ended', status({ state: ended('cri://1') }), false, '1'],
  ['it ended, only the one before is known', status({ state: ended(), lastState: ended('cri://0') }), false, '0'],
  ['it ended and nothing is known', status({ state: ended() }), false, 'container "a" in pod "p" is terminated'],
  ['it waits, one ran before', status({ ...waiting('CrashLoopBackOff'), lastState: ended('cri://0') }), false, '0'],
  [
    'it waits, one ran before, unknown',
    status({ ...waiting(), lastState: ended() }),
    false,
    'container "a" in pod "p" is terminated',
  ],
  [
    'no image',
    status(waiting('ErrImagePull')),
    false,
    `container "a" in pod "p" is waiting to start: image can't be pulled`,
  ],
  [
    'back-off',
    status(waiting('ImagePullBackOff')),
    false,
    'container "a" in pod "p" is waiting to start: trying and failing to pull image',
  ],
  ['another reason', status(waiting('X')), false, 'container "a" in pod "p" is waiting to start: X'],
  ['no reason', status(waiting()), false, 'container "a" in pod "p" is waiting to start: '],
  ['no state', status({}), false, 'container "a" in pod "p" is waiting to start - no logs yet'],
  ['the one before', status({ lastState: ended('cri://0') }), true, '0'],
  ['none before', status({}), true, 'previous terminated container "a" in pod "p" not found'],
];
for (const [name, its, previous, expected] of rows)
  test(`${name}: ${expected}`, () => {
    const pod: Pod = { metadata: { name: 'p' }, spec: { containers: [] } };
    const given = its === undefined ? pod : { ...pod, status: { initContainerStatuses: [its] } };
    const found = logContainerOf(given, 'a', previous);
    assert.equal(found.ok ? found.containerId : found.why, expected);
  });
