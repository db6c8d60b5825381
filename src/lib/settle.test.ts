import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settleAll } from './settle.ts';

test('work side by side settles together', async () => {
  const slow = Promise.withResolvers<number>();
  const did: string[] = [];
  const all = settleAll([slow.promise.then(() => void did.push('slow')), Promise.reject(new Error('first'))]);
  const settled = all.catch((err: Error) => void did.push(err.message));
  await Promise.resolve();
  slow.resolve(1);
  await settled;
  assert.deepEqual(did, ['slow', 'first']);
  const [text, number] = await settleAll([Promise.resolve('a'), Promise.resolve(1)]);
  assert.deepEqual([text.length, number.toFixed()], [1, '1']);
  await assert.rejects(settleAll([Promise.reject(new Error('one')), Promise.reject(new Error('two'))]), /one/);
});
