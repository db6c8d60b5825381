import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
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
    for (let moment = 0; moment < 24; moment++) {
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
      const writtenAndResting = async (): Promise<void> => {
        for (let tries = 0; due.length === 0; tries++) {
          assert.ok(tries < 500, `the write does not end, moment ${moment}`);
          await sleep(10);
        }
      };
      await writtenAndResting();
      due.shift()?.();
      for (let i = 0; i < moment; i++) await Promise.resolve();
      value = 2;
      file.changed();
      if (moment % 2 === 0) await file.flush();
      else await writtenAndResting();
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
    await file.close();
    assert.deepEqual([written, clock.pending], [[1, 1, 1], 0]);
  });

  it('rejects a flush whose write fails, names the file, and writes when the folder is there', async () => {
    const folder = join(root, 'later');
    const { clock, errors, written, file, change } = setup(join(folder, 'file'));
    change();
    await assert.rejects(file.flush(), /later\/file was not written: ENOENT/);
    assert.deepEqual([written, errors.length], [[1], 1]);
    await assert.rejects(file.flush(), /was not written/);
    assert.deepEqual([written, errors.length], [[1, 1], 1]);
    mkdirSync(folder);
    await rested(clock);
    await clock.advance(2000);
    await file.flush();
    assert.equal(readFileSync(join(folder, 'file'), 'utf8'), '1');
  });

  it('writes what is pending once more when it is closed, also after a flush that failed', async () => {
    const folder = join(root, 'closed');
    const { clock, file, change } = setup(join(folder, 'file'));
    change();
    await assert.rejects(file.flush());
    await rested(clock);
    mkdirSync(folder);
    await file.close();
    assert.equal(readFileSync(join(folder, 'file'), 'utf8'), '1');
    assert.equal(clock.pending, 0);
    change();
    await file.flush();
    assert.equal(readFileSync(join(folder, 'file'), 'utf8'), '2');
    assert.equal(clock.pending, 0);
  });

  it('leaves no timer and logs when the last write fails, and tries each later change once', async () => {
    const { clock, errors, written, file, change } = setup(join(root, 'never', 'file'));
    change();
    await file.close();
    assert.deepEqual(errors, ['state file was not written, trying again', 'state file was not written at the end']);
    assert.deepEqual([written, clock.pending], [[1], 0]);
    change();
    await assert.rejects(file.flush(), /was not written/);
    assert.deepEqual([written, clock.pending], [[1, 2], 0]);
  });

  it('answers each flush by the write that covers its change', async () => {
    const folder = join(root, 'covered');
    const path = join(folder, 'file');
    let value = 1;
    const content = (): string => {
      if (value === 2) mkdirSync(folder);
      return String(value);
    };
    const file = new LatestFile({ clock: new ManualClock(), log: silentLogger }, { path, content });
    file.changed();
    const first = file.flush();
    value = 2;
    file.changed();
    const second = file.flush();
    await assert.rejects(first, /ENOENT/);
    await second;
    assert.equal(readFileSync(path, 'utf8'), '2');
    await file.close();
  });
});
