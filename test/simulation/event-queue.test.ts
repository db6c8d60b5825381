// The queue of events gives them back in order, whatever is taken back meanwhile.
// runs: gate
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { EventQueue, type Queued } from './engine/event-queue.ts';
import { Random } from './engine/random.ts';

it('gives events by time, then in the order in which they came, without those taken back', () => {
  const random = new Random(3);
  const queue = new EventQueue<Queued>();
  let left: Queued[] = [];
  let [now, seq] = [0, 0];
  for (let i = 0; i < 5000; i++) {
    if (left.length === 0 || random.chance(0.55)) {
      const event = { at: now + random.int(0, 20), seq: seq++, index: 0 };
      queue.add(event);
      left.push(event);
    } else if (random.chance(0.5)) {
      const event = random.pick(left);
      queue.remove(event);
      left = left.filter((e) => e !== event);
    } else {
      const expected = left.reduce((a, b) => (a.at < b.at || (a.at === b.at && a.seq < b.seq) ? a : b));
      assert.equal(queue.first, expected);
      queue.remove(expected);
      left = left.filter((e) => e !== expected);
      now = expected.at;
    }
    assert.equal(queue.size, left.length);
  }
});
