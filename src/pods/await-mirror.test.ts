import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_SOURCE, type Pod } from '../core/pod.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { AwaitMirror } from './await-mirror.ts';

const pod = (source: string): Pod => ({
  metadata: { name: 'p', uid: 'u', annotations: { [CONFIG_SOURCE]: source } },
  spec: { containers: [] },
});
const never = new AbortController().signal;

function setup(alive: boolean) {
  const clock = new ManualClock();
  const read = Promise.withResolvers<void>();
  const waits = new AwaitMirror({
    observed: { get: () => (alive ? aliveSnapshot('u') : undefined) },
    podsRead: (signal) =>
      new Promise((resolve, reject) => {
        void read.promise.then(resolve);
        signal.addEventListener('abort', () => reject(new Error('aborted')));
      }),
    clock,
  });
  let done = false;
  const start = (source: string): Promise<unknown> => waits.before(pod(source), never).then(() => (done = true));
  return { clock, read, start, done: () => done };
}

for (const [what, source, alive, waits] of [
  ['a static pod that runs', 'file', true, true],
  ['a static pod that does not run yet', 'file', false, false],
  ['a pod of the API server', 'api', true, false],
] as const)
  test(`${what} ${waits ? 'waits until the mirrors are read' : 'does not wait'}`, async () => {
    const t = setup(alive);
    const started = t.start(source);
    await t.clock.advance(1000);
    assert.equal(t.done(), !waits);
    t.read.resolve();
    await started;
    assert.equal(t.clock.pending, 0);
  });

test('nobody waits longer than three seconds after the start of the agent', async () => {
  const t = setup(true);
  const first = t.start('file');
  await t.clock.advance(3000);
  await first;
  await t.start('file');
});
