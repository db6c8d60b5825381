import assert from 'node:assert/strict';
import { it } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { LastKnown } from './last-known.ts';

const signal = new AbortController().signal;

it('nobody waits long for a reading that does not come', async () => {
  const clock = new ManualClock();
  let reads = 0;
  let answer: (value: string) => void = () => undefined;
  const known = new LastKnown<string>({ clock, log: silentLogger }, (its) => {
    reads++;
    return new Promise((resolve, reject) => {
      answer = resolve;
      its.addEventListener('abort', () => reject(new Error('too late')), { once: true });
    });
  });
  const first = known.get(0, signal);
  answer('a');
  assert.equal(await first, 'a');
  const second = known.get(0, signal);
  const third = known.get(0, signal);
  await clock.advance(1000);
  assert.deepEqual([await second, await third], ['a', 'a'], 'what was read before');
  assert.equal(reads, 2, 'one reading for both');
  assert.equal(await known.get(5000, signal), 'a', 'new enough');
  await clock.advance(14_000);
  const fourth = known.get(0, signal);
  await clock.advance(1000);
  assert.equal(await fourth, 'a');
  assert.equal(reads, 3, 'the one that did not come was given up');
  await clock.advance(60_000);
  const late = known.get(0, signal);
  await clock.advance(1000);
  assert.equal(await late, undefined, 'too old to be shown');
});
