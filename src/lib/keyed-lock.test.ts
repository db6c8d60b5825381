import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyedLock } from './keyed-lock.ts';

const never = new AbortController().signal;

test('work on one key is done in turn, on another at the same time; who gives up waiting leaves the turn to the next', async () => {
  const lock = new KeyedLock();
  const log: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = lock.run('a', never, async () => {
    log.push('first begins');
    await gate.promise;
    log.push('first ends');
  });
  const impatient = new AbortController();
  const second = lock.run('a', impatient.signal, () => Promise.resolve(log.push('second')));
  const third = lock.run('a', never, () => Promise.resolve(log.push('third')));
  await lock.run('b', never, () => Promise.resolve(log.push('other key')));
  impatient.abort(new Error('gave up'));
  await assert.rejects(second, /gave up/);
  gate.resolve();
  await Promise.all([first, third]);
  await lock.run('a', never, () => Promise.resolve(log.push('later')));
  assert.deepEqual(log, ['first begins', 'other key', 'first ends', 'third', 'later']);
});

test('a failure frees the key', async () => {
  const lock = new KeyedLock();
  await assert.rejects(
    lock.run('a', never, () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await lock.run('a', never, () => Promise.resolve(1)), 1);
});
