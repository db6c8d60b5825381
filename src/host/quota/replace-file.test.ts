import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  fstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fileLabel, setFileLabel } from '../libc.ts';
import { replaceFile } from './replace-file.ts';

let root = '';
let path = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'replace-'));
  path = join(root, 'projects');
  writeFileSync(path, 'old');
});
afterEach(() => rmSync(root, { recursive: true }));

describe('a file that is replaced', () => {
  it('is on the disk before it has its name, and its name before it is done', () => {
    const synced: string[] = [];
    replaceFile(path, 'new', (fd) => {
      const stat = fstatSync(fd);
      synced.push(stat.isDirectory() ? `directory ${stat.ino === statSync(root).ino}` : `file of ${stat.size}`);
      synced.push(readFileSync(path, 'utf8'));
    });
    assert.deepEqual(synced, ['file of 3', 'old', 'directory true', 'new']);
    replaceFile(path, 'newer');
    assert.deepEqual([readFileSync(path, 'utf8'), readdirSync(root)], ['newer', ['projects']]);
  });

  it('keeps its mode, and leaves nothing when it fails', () => {
    chmodSync(path, 0o646);
    replaceFile(path, 'new');
    assert.equal(statSync(path).mode & 0o7777, 0o646);
    const full = (): never => {
      throw new Error('no space');
    };
    assert.throws(() => replaceFile(path, 'other', full), /no space/);
    assert.deepEqual([readFileSync(path, 'utf8'), readdirSync(root)], ['new', ['projects']]);
  });

  it('keeps its owner and its label', { skip: process.getuid?.() !== 0 }, () => {
    chownSync(path, 12, 34);
    setFileLabel(path, 'system_u:object_r:etc_t:s0');
    replaceFile(path, 'new');
    assert.deepEqual([statSync(path).uid, statSync(path).gid, fileLabel(path)], [12, 34, 'system_u:object_r:etc_t:s0']);
  });
});
