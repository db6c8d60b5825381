import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { silentLogger } from '../../lib/logger.ts';
import { DriverWatch } from './driver-watch.ts';

async function until(what: string, is: () => boolean): Promise<void> {
  for (let i = 0; i < 500; i++) {
    if (is()) return;
    await systemClock.sleep(20, new AbortController().signal);
  }
  assert.fail(what);
}

type Watched = { readonly dir: string; readonly told: string[][] };
async function watched(work: (watch: Watched) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'flex-watch-'));
  const dir = join(root, 'libexec/exec');
  const told: string[][] = [];
  const watch = new DriverWatch(
    { clock: systemClock, log: silentLogger, onChange: (names) => void told.push([...names].sort()) },
    { dir },
  );
  const stop = new AbortController();
  const ran = watch.run(stop.signal);
  try {
    await until('the directory is there', () => existsSync(dir));
    await work({ dir, told });
  } finally {
    stop.abort();
    await ran;
    rmSync(root, { recursive: true });
  }
}

test('drivers that come and change are told; the directory is made, also again', () =>
  watched(async ({ dir, told }) => {
    mkdirSync(join(dir, 'vendor~x'));
    mkdirSync(join(dir, '.tmp'));
    writeFileSync(join(dir, '.tmp/tmp'), '');
    writeFileSync(join(dir, 'vendor~x/x'), '');
    await until('a driver is told', () => told.length > 0);
    assert.deepEqual(told.at(-1), ['vendor/x']);
    const before = told.length;
    writeFileSync(join(dir, 'vendor~x/x'), 'another');
    await until('its new program is told', () => told.length > before);
    rmSync(dir, { recursive: true });
    await until('the directory is made again', () => existsSync(dir));
    mkdirSync(join(dir, 'plain'));
    writeFileSync(join(dir, 'plain/plain'), '');
    await until('and watched', () => told.at(-1)?.includes('plain') === true);
  }));

test('what a driver writes beside its program is no reason to call it again', () =>
  watched(async ({ dir, told }) => {
    mkdirSync(join(dir, 'vendor~x'));
    writeFileSync(join(dir, 'vendor~x/x'), '');
    await until('a driver is told', () => told.length > 0);
    const before = told.length;
    writeFileSync(join(dir, 'vendor~x/log'), 'called');
    writeFileSync(join(dir, 'log'), 'called');
    mkdirSync(join(dir, 'other'));
    writeFileSync(join(dir, 'other/other'), '');
    await until('a later change is told', () => told.length > before);
    assert.deepEqual(told.slice(before), [['other']]);
  }));

test('a directory that cannot be made stops nothing', async () => {
  const stop = new AbortController();
  const onChange = (): void => assert.fail('nothing is there');
  const watch = new DriverWatch(
    { clock: systemClock, log: silentLogger, onChange },
    { dir: join(import.meta.filename, 'exec') },
  );
  const ran = watch.run(stop.signal);
  await systemClock.sleep(50, new AbortController().signal);
  stop.abort();
  await ran;
});
