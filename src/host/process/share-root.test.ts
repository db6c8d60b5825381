import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { LeveledLogger } from '../../lib/logger.ts';
import { systemClock } from '../../lib/clock.ts';
import { readMountTable } from '../mounts/mount-table.ts';
import { shareRootDir } from './share-root.ts';

let dir: string;
let root: string;
let said: string[];
const log = new LeveledLogger(
  systemClock,
  { write: ({ severity, message }) => void said.push(`${severity} ${message}`) },
  () => 0,
);

const mount = (...args: string[]): Buffer => execFileSync('mount', args);
const sharedAt = async (path: string): Promise<boolean | undefined> => (await readMountTable()).holding(path)?.shared;
const depthAt = async (path: string): Promise<number> => (await readMountTable()).depthAt(path);

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kts-share-'));
  mount('-t', 'tmpfs', 'none', dir);
  mount('--make-private', dir);
  root = join(dir, 'kubelet');
  mkdirSync(join(root, 'pods/v'), { recursive: true });
  said = [];
});
afterEach(() => {
  execFileSync('umount', ['-l', dir]);
  rmSync(dir, { recursive: true });
});

test('a root directory on a private mount becomes a shared one, once', async () => {
  assert.equal(await sharedAt(root), false);
  shareRootDir(root, log);
  assert.equal(await sharedAt(root), true);
  assert.equal(await sharedAt(dir), false, 'the rest of the machine stays as it is');
  shareRootDir(root, log);
  assert.equal(await depthAt(root), 1);
  assert.deepEqual(said, ['I made the root directory a shared mount']);
});

test('one behind a link, too', async () => {
  symlinkSync('kubelet', join(dir, 'link'));
  shareRootDir(join(dir, 'link'), log);
  assert.equal(await sharedAt(root), true);
});

test('a disk of its own is shared as it is', async () => {
  mount('-t', 'tmpfs', 'none', root);
  mount('--make-private', root);
  shareRootDir(root, log);
  assert.equal(await sharedAt(root), true);
  assert.equal(await depthAt(root), 1);
});

test('what is mounted below it is not hidden', async () => {
  const volume = join(root, 'pods/v');
  mount('-t', 'tmpfs', 'none', volume);
  shareRootDir(root, log);
  assert.equal(await depthAt(root), 0);
  assert.equal(await depthAt(volume), 1);
  assert.match(said.join(), /^W volumes are mounted below the root directory/);
});

test('on a shared mount there is nothing to do', async () => {
  mount('--make-shared', dir);
  shareRootDir(root, log);
  assert.equal(await depthAt(root), 0);
  assert.deepEqual(said, []);
});

test('where it cannot be done, that is told', () => {
  shareRootDir(join(dir, 'gone'), log);
  shareRootDir(root, log, join(dir, 'no-mountinfo'));
  assert.match(said.join('\n'), /^W the root directory stays a private mount.*\nW the root directory stays/);
});
