import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../core/ids.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { emptySnapshot } from '../core/snapshot.ts';
import { runningLogs } from './running-logs.ts';

test('running containers that have a log', () => {
  const containers = [
    observedContainer('a', { logPath: '/a' }),
    observedContainer('ended', { logPath: '/ended', state: 'exited' }),
    observedContainer('silent'),
  ];
  assert.deepEqual(runningLogs([{ ...emptySnapshot(podUid('u'), 'p', 'n'), containers }]), [
    { id: 'a', logPath: '/a' },
  ]);
});
