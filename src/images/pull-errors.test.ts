import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinErrors, pullFailure } from './pull-errors.ts';

test('several failures: each text once', () => {
  assert.equal(joinErrors(['a', 'a']), 'a');
  assert.equal(joinErrors(['a', 'b', 'a']), '[a, b]');
  assert.equal(joinErrors([]), '[]');
});

test('two kinds of failure have reasons of their own', () => {
  assert.deepEqual(pullFailure('x:1', 'RegistryUnavailable: no route'), {
    reason: 'RegistryUnavailable',
    message: 'image pull failed for x:1 because the registry is unavailable: no route',
  });
  assert.deepEqual(pullFailure('x:1', 'not found'), { reason: 'ErrImagePull', message: 'not found' });
});
