// Paths that users name lie in directories that containers may write to.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { SafeHostFiles } from './host-files.ts';
import { MountTable } from './mount-table.ts';

const { signal } = new AbortController();
const files = new SafeHostFiles({ clock: systemClock, mounter: { table: async () => new MountTable([]) } });
let root = '';
let path = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'host-files-'));
  path = join(root, 'file');
});
afterEach(() => rmSync(root, { recursive: true }));

describe('a file that is made', () => {
  it('is empty, and has its mode', async () => {
    await files.makeFile(path, signal);
    assert.deepEqual([statSync(path).size, statSync(path).mode & 0o777], [0, 0o644]);
    await assert.rejects(files.makeFile(join(root, 'no', 'file'), signal), { code: 'ENOENT' });
  });

  it('leaves a pipe that came in between alone, and waits for nothing', async () => {
    execFileSync('mkfifo', [path]);
    let hasWaited = false;
    // A pipe opened for writing waits until it is opened for reading.
    const free = systemClock.after(5_000, () => {
      hasWaited = true;
      closeSync(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK));
    });
    await files.makeFile(path, signal);
    free.cancel();
    assert.deepEqual([await files.kindOf(path, signal), hasWaited], ['other', false]);
  });

  it('is not made where a link leads', async () => {
    symlinkSync(join(root, 'elsewhere'), path);
    await files.makeFile(path, signal);
    assert.ok(lstatSync(path).isSymbolicLink());
    assert.ok(!existsSync(join(root, 'elsewhere')));
  });
});
