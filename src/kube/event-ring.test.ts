import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { KubeEvent } from '../core/node.ts';
import { EventRing } from './event-ring.ts';

const event = (uid: string, message: string): KubeEvent => ({
  metadata: { name: 'e' },
  involvedObject: { kind: 'Pod', uid },
  reason: 'R',
  count: 1,
  message,
});

const messages = (ring: EventRing, uid: string): readonly (string | undefined)[] =>
  ring.ringOf(uid).map(({ message }) => message?.slice(0, 3));

it('beyond the bound in bytes the object with the most events loses its oldest ones', () => {
  const ring = new EventRing(20_000);
  ring.add(event('quiet', 'only'));
  ring.add(event('', 'node'));
  for (let i = 100; i < 150; i++) ring.add(event('loud', `${i}${'x'.repeat(1000)}`));
  assert.deepEqual(messages(ring, 'loud'), ['144', '145', '146', '147', '148', '149'], '2,706 bytes each');
  ring.add(event('quiet', 'more'));
  assert.deepEqual([messages(ring, 'quiet'), messages(ring, '')], [['onl', 'mor'], ['nod']]);
  assert.equal(ring.all().length, 9);
});

it('a repeat of an event takes no more room', () => {
  const ring = new EventRing(2_000);
  ring.add(event('a', 'first'));
  for (let i = 0; i < 50; i++) ring.add(event('a', 'again'));
  assert.deepEqual(
    ring.ringOf('a').map(({ message, count }) => [message, count]),
    [
      ['first', 1],
      ['again', 50],
    ],
  );
});
