import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { PodCidr } from './pod-cidr.ts';

const { signal } = new AbortController();

test('a pod range is told once, and again after a failure', async () => {
  const told: string[] = [];
  const errors: string[] = [];
  let fails = true;
  const range = new PodCidr({
    runtime: {
      setPodCidr: (cidr) => {
        told.push(cidr);
        return fails ? Promise.reject(new Error('no')) : Promise.resolve();
      },
    },
    log: { ...silentLogger, error: (message) => void errors.push(message) },
  });
  await range.set('', signal);
  await range.set('10.1.0.0/24', signal);
  fails = false;
  await range.set('10.1.0.0/24', signal);
  await range.set('10.1.0.0/24', signal);
  await range.set('10.2.0.0/24', signal);
  assert.deepEqual(told, ['10.1.0.0/24', '10.1.0.0/24', '10.2.0.0/24']);
  assert.equal(errors.length, 1);
});
