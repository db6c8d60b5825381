import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idleShareReader } from './idle-share.ts';

test('the idle share is of the time since the last look', () => {
  const lines = [
    'cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1\n',
    'cpu  110 0 110 760 120 0 0 0 0 0\n',
    'cpu  210 0 110 760 120 0 0 0 0 0\n',
    'cpu  210 0 110 760 120 0 0 0 0 0\n',
    '',
  ];
  const idle = idleShareReader(() => lines.shift() ?? '');
  assert.deepEqual([idle(), idle(), idle(), idle(), idle()], [0, 0.8, 0, 0, 0]);
  const real = idleShareReader();
  assert.equal(real(), 0);
  assert.ok(real() >= 0 && real() <= 1);
});
