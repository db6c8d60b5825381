import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { ManualClock } from '../../lib/manual-clock.ts';
import { Progress } from './progress.ts';

async function said(columns: number, use: (progress: Progress, clock: ManualClock) => Promise<void>): Promise<string> {
  let text = '';
  const clock = new ManualClock(0);
  await use(new Progress({ out: (more) => (text += more), clock, columns }), clock);
  return text;
}

test('without a terminal: whole lines, and what takes long only every five seconds', async () => {
  const text = await said(0, async (progress, clock) => {
    for (let i = 0; i < 110; i++) {
      progress.wait('the node');
      await clock.advance(100);
    }
    progress.tell('the node is ready');
    progress.end();
  });
  assert.equal(text, '[  5.1s] waiting: the node\n[ 10.2s] waiting: the node\n[ 11.0s] the node is ready\n');
});

test('on a terminal: one line that is rewritten, never wider than it', async () => {
  const text = await said(30, async (progress, clock) => {
    progress.wait('something with a long explanation');
    progress.wait('drawn too soon');
    await clock.advance(500);
    progress.wait('the node');
    progress.tell('the node is ready');
    progress.end();
  });
  assert.deepEqual(text.split('\r\u001b[K'), [
    '',
    '[  0.0s] waiting: something w',
    '[  0.5s] waiting: the node',
    '[  0.5s] the node is ready\n',
  ]);
});
