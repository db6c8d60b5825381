import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { endForShutdown, shutdownStatus } from './end-for-shutdown.ts';

const pod: Pod = { metadata: { name: 'p', uid: 'u' }, spec: { containers: [] } };

test('a pod has ended when it has stopped and nothing of it is mounted', async () => {
  const clock = new ManualClock();
  const asked: (number | undefined)[] = [];
  let mounts = 1;
  let done = false;
  const ending = endForShutdown(
    {
      workers: { stop: (_uid, { graceSeconds }) => void asked.push(graceSeconds), stopped: () => Promise.resolve() },
      volumes: { mountsOf: () => ({ size: mounts }) },
      clock,
    },
    pod,
    7,
    new AbortController().signal,
  ).then(() => (done = true));
  await clock.advance(1000);
  assert.deepEqual([asked, done], [[7], false]);
  mounts = 0;
  await clock.advance(100);
  await ending;
});

test('the status says why, unless the pod had succeeded', () => {
  for (const [before, after] of [
    ['Running', 'Failed'],
    ['Succeeded', 'Succeeded'],
  ] as const) {
    const status = shutdownStatus({ phase: before, observedGeneration: 3 });
    assert.equal(status.conditions?.[0]?.observedGeneration, 3);
    assert.equal(shutdownStatus({ phase: before }).conditions?.[0]?.observedGeneration, undefined);
    assert.deepEqual([status.phase, status.reason], [after, 'Terminated']);
    assert.equal(status.conditions?.[0]?.type, 'DisruptionTarget');
  }
});
