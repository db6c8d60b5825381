// Calls that open something leave nothing open when they fail.
import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { watchOpens } from './libc.ts';

/** Descriptors of this process by which files are watched. */
const watchers = (): number =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === 'anon_inode:inotify';
    } catch {
      return false; // that of the listing itself
    }
  }).length;

it('a watch that cannot be set leaves no descriptor behind', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kts-libc-'));
  try {
    const before = watchers();
    for (let tries = 0; tries < 5; tries++) assert.throws(() => watchOpens(join(folder, 'absent')), /ENOENT|No such/i);
    assert.equal(watchers(), before);
    writeFileSync(join(folder, 'there'), '');
    const fd = watchOpens(join(folder, 'there'));
    assert.equal(watchers(), before + 1);
    closeSync(fd);
    assert.equal(watchers(), before);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
