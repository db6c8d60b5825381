// Hosts and termination files are made and written in their place only, whatever was planted there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { PodFiles } from './pod-files.ts';

let root = '';
let victim = '';
let files: PodFiles;
const own = (...path: string[]): string => join(root, 'pods', 'u', ...path);
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kts-files-'));
  victim = join(root, 'victim');
  mkdirSync(victim);
  writeFileSync(join(victim, 'file'), 'untouched', { mode: 0o600 });
  files = new PodFiles(systemClock, root);
});
afterEach(() => {
  assert.deepEqual(readdirSync(victim), ['file']);
  assert.equal(readFileSync(join(victim, 'file'), 'utf8'), 'untouched');
  assert.equal(statSync(join(victim, 'file')).mode & 0o777, 0o600);
  rmSync(root, { recursive: true, force: true });
});

describe('the hosts file', () => {
  it('is made, then changed in place', async () => {
    const path = await files.writeHosts('u', 'one long text\n');
    assert.equal(path, own('etc-hosts'));
    const { ino, mode } = statSync(path);
    assert.equal(mode & 0o777, 0o644);
    assert.equal(statSync(own()).mode & 0o777, 0o750);
    await files.writeHosts('u', 'two\n');
    assert.equal(readFileSync(path, 'utf8'), 'two\n');
    assert.equal(statSync(path).ino, ino);
  });

  const plants: Readonly<Record<string, () => void>> = {
    'a symlink': () => symlinkSync(join(victim, 'file'), own('etc-hosts')),
    'a symlink to nothing yet': () => symlinkSync(join(victim, 'new'), own('etc-hosts')),
    'a hard link': () => linkSync(join(victim, 'file'), own('etc-hosts')),
    'a pipe': () => void execFileSync('mkfifo', [own('etc-hosts')]),
  };
  for (const [what, plant] of Object.entries(plants))
    it(`replaces ${what}`, async () => {
      mkdirSync(own(), { recursive: true });
      plant();
      const path = await files.writeHosts('u', 'hosts\n');
      assert.equal(readFileSync(path, 'utf8'), 'hosts\n');
      assert.ok(statSync(path).isFile());
    });

  it('is not written into a pod directory that is a link', async () => {
    mkdirSync(join(root, 'pods'));
    symlinkSync(victim, own());
    await assert.rejects(files.writeHosts('u', 'x'), { code: 'ENOTDIR' });
  });

  it('is not written for a pod whose name is a path', async () => {
    await assert.rejects(files.writeHosts('../victim', 'x'), /not the name of a directory entry/);
  });
});

describe('a termination message file', () => {
  it('is new and open to all, in a directory that is not', async () => {
    const [first, second] = [files.newTerminationLog('u', 'c'), files.newTerminationLog('u', 'c')];
    assert.notEqual(first.path, second.path);
    assert.match(first.path, /\/pods\/u\/containers\/c\/[0-9a-f]{8}$/);
    assert.ok(!existsSync(first.path), 'only named so far');
    await first.create();
    assert.equal(statSync(first.path).mode & 0o777, 0o666);
    assert.equal(statSync(own('containers', 'c')).mode & 0o777, 0o750);
    await first.remove();
    assert.deepEqual(readdirSync(own('containers', 'c')), []);
  });

  it('of an earlier start goes when no instance has it mounted', async () => {
    const logs = Array.from({ length: 4 }, () => files.newTerminationLog('u', 'c'));
    for (const log of logs) await log.create();
    const other = files.newTerminationLog('u', 'other');
    await other.create();
    writeFileSync(own('containers', 'c', 'not-ours'), '');
    const [, kept, , last] = logs;
    await last?.removeUnused(new Set([kept?.path ?? '']));
    const left = [kept, last].map((log) => basename(log?.path ?? ''));
    assert.deepEqual(readdirSync(own('containers', 'c')).sort(), [...left, 'not-ours'].sort());
    assert.ok(existsSync(other.path));
  });

  for (const at of [['containers'], ['containers', 'c']])
    it(`is not made behind a link at ${at.join('/')}`, async () => {
      mkdirSync(own(...at.slice(0, -1)), { recursive: true });
      symlinkSync(victim, own(...at));
      await assert.rejects(files.newTerminationLog('u', 'c').create(), { code: 'ENOTDIR' });
    });
});
