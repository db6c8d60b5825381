import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LatestFile } from './latest-file.ts';
import { silentLogger } from './logger.ts';
import { ManualClock } from './manual-clock.ts';

const root = mkdtempSync(join(tmpdir(), 'latest-file-'));
after(() => rmSync(root, { recursive: true, force: true }));

function setup(path: string) {
  const clock = new ManualClock();
  const errors: string[] = [];
  const written: number[] = [];
  const log = { ...silentLogger, error: (message: string) => void errors.push(message) };
  const state = { value: 0 };
  const file = new LatestFile(
    { clock, log },
    {
      path,
      content: () => {
        written.push(state.value);
        return String(state.value);
      },
    },
  );
  const change = (): void => {
    state.value++;
    file.changed();
  };
  return { clock, errors, written, file, change };
}

/** Until the write under way is over and the file rests. */
async function rested(clock: ManualClock): Promise<void> {
  for (let tries = 0; clock.pending === 0; tries++) {
    assert.ok(tries < 500, 'the write does not end');
    await sleep(10);
  }
}

describe('a file that follows a value', () => {
  it('writes the first change at once and those of a burst together', async () => {
    const path = join(root, 'burst');
    const { clock, written, file, change } = setup(path);
    change();
    await rested(clock);
    assert.equal(readFileSync(path, 'utf8'), '1');
    for (let i = 0; i < 50; i++) change();
    await clock.advance(199);
    assert.deepEqual(written, [1]);
    await clock.advance(1);
    await file.flush();
    assert.deepEqual(written, [1, 51]);
    assert.equal(readFileSync(path, 'utf8'), '51');
    assert.equal(clock.pending, 0);
  });

  it('does not rest when somebody waits for the disk', async () => {
    const path = join(root, 'flush');
    const { clock, written, file, change } = setup(path);
    change();
    await rested(clock);
    change();
    await file.flush();
    assert.equal(readFileSync(path, 'utf8'), '2');
    assert.deepEqual([written, clock.pending], [[1, 2], 0]);
    await file.flush();
    assert.deepEqual(written, [1, 2]);
  });

  it('loses no change, whatever moment of the end of a rest it comes at', async () => {
    for (let moment = 0; moment < 12; moment++) {
      const path = join(root, `moment-${moment}`);
      const due: (() => void)[] = [];
      const timers = (_ms: number, fn: () => void) => {
        due.push(fn);
        return { cancel: () => undefined };
      };
      const clock = Object.assign(new ManualClock(), { after: timers });
      let value = 1;
      const file = new LatestFile({ clock, log: silentLogger }, { path, content: () => String(value) });
      file.changed();
      for (let tries = 0; due.length === 0; tries++) {
        assert.ok(tries < 500, 'the write does not end');
        await sleep(10);
      }
      due.shift()?.();
      for (let i = 0; i < moment; i++) await Promise.resolve();
      value = 2;
      file.changed();
      await file.flush();
      assert.equal(readFileSync(path, 'utf8'), '2', `moment ${moment}`);
    }
  });

  it('tells of a write that fails once, and tries again until it succeeds', async () => {
    const folder = join(root, 'missing');
    const { clock, errors, written, file, change } = setup(join(folder, 'file'));
    change();
    await rested(clock);
    await clock.advance(999);
    assert.deepEqual(written, [1]);
    await clock.advance(1);
    await rested(clock);
    assert.deepEqual([written, errors], [[1, 1], ['state file was not written, trying again']]);
    mkdirSync(folder);
    await clock.advance(2000);
    await rested(clock);
    assert.equal(readFileSync(join(folder, 'file'), 'utf8'), '1');
    await file.flush();
    assert.deepEqual([written, clock.pending], [[1, 1, 1], 0]);
  });

  it('tries once more for somebody who waits for the disk, not for ever', async () => {
    const { errors, written, file, change } = setup(join(root, 'never', 'file'));
    change();
    await file.flush();
    assert.deepEqual([written, errors.length], [[1], 1]);
    assert.ok(!readdirSync(root).includes('never'));
  });
});
