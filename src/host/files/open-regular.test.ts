// Files that somebody else replaced: nothing is opened that could wait, do something or be another file.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { openRegular } from './open-regular.ts';

const root = mkdtempSync(join(tmpdir(), 'open-regular-'));
after(() => rmSync(root, { recursive: true, force: true }));
writeFileSync(join(root, 'file'), 'text');
symlinkSync('file', join(root, 'link'));
mkdirSync(join(root, 'directory'));
execFileSync('mkfifo', [join(root, 'pipe')]);

const text = async (name: string, follow = false): Promise<string> => {
  const handle = await openRegular(join(root, name), { follow });
  try {
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
};

describe('opening a file that may be anything', () => {
  it('reads regular files, links only where they are meant', async () => {
    assert.equal(await text('file'), 'text');
    await assert.rejects(text('link'), { kind: 'invalid' });
    assert.equal(await text('link', true), 'text');
    await assert.rejects(text('directory'), { kind: 'invalid' });
    await assert.rejects(text('none'), { code: 'ENOENT' });
  });

  it('never opens a pipe: the shared threads stay free', async () => {
    const before = readdirSync('/proc/self/fd').length;
    await Promise.all(Array.from({ length: 16 }, () => assert.rejects(text('pipe'), { kind: 'invalid' })));
    assert.ok((await stat('/')).isDirectory());
    assert.equal(readdirSync('/proc/self/fd').length, before, 'nothing stays open');
  });
});
