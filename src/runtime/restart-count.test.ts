import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerStatus, Pod } from '../core/pod.ts';
import { restartCountFromStatus } from './restart-count.ts';

const podWith = (...containerStatuses: Partial<ContainerStatus>[]): Pod =>
  ({ metadata: { name: 'p' }, spec: { containers: [] }, status: { containerStatuses } }) as unknown as Pod;
const ended = (reason: string) => ({ terminated: { exitCode: 1, reason, startedAt: null, finishedAt: null } });
const running = { running: { startedAt: '2026-01-01T00:00:00Z' } };
const waiting = { waiting: { reason: 'ContainerCreating' } };

const ROWS: [what: string, status: Partial<ContainerStatus>[], want: number][] = [
  ['nothing was said of it', [], 0],
  ['it never ran', [{ name: 'c', state: waiting, lastState: {}, restartCount: 0 }], 0],
  ['it ran and is gone from the runtime', [{ name: 'c', state: running, lastState: {}, restartCount: 3 }], 4],
  ['it ended', [{ name: 'c', state: ended('Error'), lastState: {}, restartCount: 3 }], 4],
  ['it waits for its next start', [{ name: 'c', state: waiting, lastState: ended('Error'), restartCount: 3 }], 4],
  [
    'its unseen end was counted already',
    [{ name: 'c', state: waiting, lastState: ended('ContainerStatusUnknown'), restartCount: 3 }],
    3,
  ],
  ['an entry with hardly anything in it', [{ name: 'c' }], 0],
  ['another container', [{ name: 'x', state: running, lastState: {}, restartCount: 3 }], 0],
];

for (const [what, statuses, want] of ROWS)
  test(`the restart count when ${what}`, () => assert.equal(restartCountFromStatus(podWith(...statuses), 'c'), want));

test('the restart count of a pod without a status', () =>
  assert.equal(restartCountFromStatus({ metadata: { name: 'p' }, spec: { containers: [] } }, 'c'), 0));
