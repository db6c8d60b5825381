import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { evictVictims } from './evict-victims.ts';

const victim = (name: string): Pod => ({ metadata: { name }, spec: { containers: [] } });

test('victims are evicted at once; one that outlasts its grace period is left to end by itself', async () => {
  const clock = new ManualClock();
  const evicted: string[] = [];
  const evict = (pod: Pod, why: { reason: string }): Promise<void> => {
    evicted.push(`${pod.metadata.name} ${why.reason}`);
    return pod.metadata.name === 'slow' ? Promise.reject(new Error('timeout waiting to kill pod')) : Promise.resolve();
  };
  await evictVictims({ evict, clock, log: silentLogger }, [victim('slow'), victim('b')], new AbortController().signal);
  assert.deepEqual(evicted, ['slow Preempting', 'b Preempting']);
});

test('a preemption takes two minutes at most, and stops with the agent', async () => {
  const clock = new ManualClock();
  const evict = (_pod: Pod, _why: unknown, signal: AbortSignal): Promise<void> =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  let settled = false;
  const waiting = evictVictims({ evict, clock, log: silentLogger }, [victim('a')], new AbortController().signal);
  void waiting.then(() => (settled = true));
  await clock.advance(119_000);
  assert.equal(settled, false);
  await clock.advance(1000);
  await waiting;
  const stop = new AbortController();
  const stopped = evictVictims({ evict, clock, log: silentLogger }, [victim('a')], stop.signal);
  stop.abort();
  await assert.rejects(stopped);
  assert.equal(clock.pending, 0);
});
