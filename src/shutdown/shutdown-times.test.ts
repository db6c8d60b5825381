import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Registry } from '../lib/metrics.ts';
import { ShutdownTimes } from './shutdown-times.ts';

const START = Date.parse('2026-01-02T03:04:05Z');
let path: string;
before(async () => {
  path = join(await mkdtemp(join(tmpdir(), 'shutdown-')), 'state');
});
after(() => rm(join(path, '..'), { recursive: true }));

const opened = async (): Promise<{ times: ShutdownTimes; shown: () => readonly number[] }> => {
  const registry = new Registry();
  const times = new ShutdownTimes(registry, path);
  await times.load();
  const shown = (): readonly number[] =>
    ['start', 'end'].map((which) => Number(new RegExp(`${which}_time_seconds (\\d\\S*)`).exec(registry.render())?.[1]));
  return { times, shown };
};

test('the times of a shutdown are there after the next start', async () => {
  const before = await opened();
  assert.deepEqual(before.shown(), [0, 0]);
  await before.times.started(START);
  const killed = await opened();
  assert.deepEqual(killed.shown(), [START / 1000, 0], 'the machine may go before the end');
  assert.match(await readFile(path, 'utf8'), /"endTime":"0001-01-01T00:00:00Z"/);
  await before.times.ended(START + 2000);
  assert.deepEqual(before.shown(), [START / 1000, START / 1000 + 2]);
  assert.deepEqual((await opened()).shown(), [START / 1000, START / 1000 + 2]);
});

test('a damaged file is an error, strange times are none', async () => {
  await writeFile(path, '{"startTime":5,"endTime":"soon"}');
  assert.deepEqual((await opened()).shown(), [0, 0]);
  await writeFile(path, '{');
  await assert.rejects(opened());
});
