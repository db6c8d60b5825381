import assert from 'node:assert/strict';
import { it } from 'node:test';
import { silentLogger } from '../../lib/logger.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { QuietMemory } from './quiet-memory.ts';

it('collects once after the start, then only after a busy time that left something behind', async () => {
  const clock = new ManualClock();
  let [resident, collected, trimmed] = [100e6, 0, 0];
  const withCode: boolean[] = [];
  const memory = new QuietMemory({
    clock,
    log: silentLogger,
    ownBytes: () => resident,
    collect: ({ andCode }) => {
      collected++;
      withCode.push(andCode);
      resident = 80e6;
    },
    trim: () => void trimmed++,
    dropPages: () => Promise.resolve(),
  });
  const stop = new AbortController();
  const running = memory.run(stop.signal);
  await clock.advance(10_000);
  assert.equal(collected, 1, 'the start is over');
  memory.touch();
  resident = 90e6;
  await clock.advance(20_000);
  assert.equal(collected, 1, 'hardly grown');
  assert.equal(trimmed, 2, 'native memory goes with less');
  memory.touch();
  resident = 120e6;
  for (let i = 0; i < 5; i++) {
    await clock.advance(6000);
    memory.touch();
  }
  assert.equal(collected, 1, 'still busy');
  await clock.advance(10_000);
  assert.equal(collected, 2);
  await clock.advance(600_000);
  assert.equal(collected, 2, 'nothing happened since');
  assert.equal(trimmed, 2, 'what was collected left as much as after the last time');
  assert.deepEqual(withCode, [true, false], 'code that pods needed stays for the next ones');
  stop.abort();
  await running;
});

it('really collects', async () => {
  const clock = new ManualClock();
  const memory = new QuietMemory({ clock, log: silentLogger });
  const gone = new WeakRef({ big: Buffer.alloc(1000) });
  const stop = new AbortController();
  const running = memory.run(stop.signal);
  await new Promise(setImmediate);
  await clock.advance(10_000);
  assert.equal(gone.deref(), undefined);
  stop.abort();
  await running;
});

it('collects also where native memory cannot be given back', async () => {
  const clock = new ManualClock();
  const done: string[] = [];
  const trim = (): never => {
    throw new Error('no malloc_trim here');
  };
  const memory = new QuietMemory({
    clock,
    log: silentLogger,
    ownBytes: () => 1,
    collect: () => void done.push('collected'),
    trim,
    dropPages: async () => void done.push('dropped'),
  });
  const stop = new AbortController();
  const running = memory.run(stop.signal);
  await clock.advance(10_000);
  assert.deepEqual(done, ['collected', 'dropped']);
  stop.abort();
  await running;
});

it('ends at once where the end has come already', () =>
  new QuietMemory({ clock: new ManualClock(), log: silentLogger }).run(AbortSignal.abort()));
