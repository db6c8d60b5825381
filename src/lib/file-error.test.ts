import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { writeFileAtomic } from './atomic-file.ts';
import { atPath } from './file-error.ts';

const errorOf = (code: string, message: string): Error => Object.assign(new Error(`${code}: ${message}`), { code });

describe('an error of a file call', () => {
  const rows: readonly [string, string, string][] = [
    ['ENOENT', "no such file or directory, open '/proc/self/fd/26/8e30875e'", 'no such file or directory, open'],
    ['EXDEV', "cross-device link not permitted, rename '/a' -> '/it's'", 'cross-device link not permitted, rename'],
    ['EIO', 'i/o error, write', 'i/o error, write'],
  ];
  for (const [code, message, what] of rows)
    it(`names the path: ${message}`, () => {
      const err = errorOf(code, message);
      assert.equal(atPath(err, '/p/f'), err);
      assert.deepEqual(Object.entries(err), [
        ['code', code],
        ['path', '/p/f'],
      ]);
      assert.equal(err.message, `${code}: ${what} '/p/f'`);
    });

  it('says what a disk is short of', () => {
    for (const [code, advice] of [
      ['ENOSPC', 'no space, or no inodes, are left on'],
      ['EDQUOT', 'the quota is used up on'],
      ['EROFS', 'nothing can be written to'],
    ] as const)
      assert.equal(
        atPath(errorOf(code, 'why, write'), '/p/f').message,
        `${code}: why, write '/p/f': ${advice} the file system of /p/f`,
      );
  });

  it('leaves others as they are', () => {
    for (const err of [new Error('ENOENT: so'), errorOf('ERR_OUT_OF_RANGE', 'x'), 'text', undefined]) {
      const before = String(err);
      assert.equal(String(atPath(err, '/p')), before);
    }
  });

  it('is that of the file, not of the temporary one, when it is replaced', async () => {
    const path = join(tmpdir(), 'kts-nowhere', 'file');
    const message = `ENOENT: no such file or directory, open '${path}'`;
    await assert.rejects(writeFileAtomic(path, 'x', 0o600), { code: 'ENOENT', path, message });
    await assert.rejects(readFile(path), { code: 'ENOENT' });
  });
});
