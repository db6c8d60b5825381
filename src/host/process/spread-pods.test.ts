import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { silentLogger } from '../../lib/logger.ts';
import { majorMinor } from '../block/device-facts.ts';
import { spreadPods } from './spread-pods.ts';

const EXT4_MAGIC = 0xef53;
let dir: string;
let sys: string;
let pods: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kts-spread-'));
  sys = join(dir, 'sys');
  pods = join(dir, 'pods');
  mkdirSync(pods);
  mkdirSync(join(sys, 'dev/block'), { recursive: true });
  symlinkSync('../../devices/virtual/block/disk7', join(sys, 'dev/block', majorMinor(statSync(pods).dev)));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** The machine's disk is an ext4 whose journal is written by this. */
function journal(task: string): void {
  mkdirSync(join(sys, 'fs/ext4/disk7'), { recursive: true });
  writeFileSync(join(sys, 'fs/ext4/disk7/journal_task'), `${task}\n`);
}

const isExt4 = (): boolean => statfsSync(pods).type === EXT4_MAGIC;
const isMarked = (): boolean =>
  isExt4() && /^\S*T/.test(execFileSync('lsattr', ['-d', pods], { encoding: 'utf8' }).trim());

test('pods of a disk without a journal get block groups of their own', () => {
  journal('<none>');
  spreadPods([pods], silentLogger, sys);
  assert.equal(isMarked(), isExt4());
  spreadPods([pods], silentLogger, sys);
  assert.equal(isMarked(), isExt4());
});

test('pods of other disks are left alone', () => {
  spreadPods([pods], silentLogger, sys);
  assert.equal(isMarked(), false, 'no ext4');
  journal('274');
  spreadPods([pods], silentLogger, sys);
  assert.equal(isMarked(), false, 'a journal');
  spreadPods([pods], silentLogger, join(dir, 'no-sys'));
  assert.equal(isMarked(), false, 'a kernel that does not tell');
});

test('a directory that is gone costs nothing', () => {
  journal('<none>');
  spreadPods([join(dir, 'gone'), pods], silentLogger, sys);
  assert.equal(isMarked(), isExt4());
});
