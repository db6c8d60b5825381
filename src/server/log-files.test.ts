// What a reader of /logs can open: nothing outside of the folder, and nothing that is not a file or a directory.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openBelow } from './log-files.ts';

const openFiles = (root: string): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target.startsWith(root) ? [target] : [];
    } catch {
      return []; // closed meanwhile
    }
  });

describe('a file below /logs', () => {
  let root: string;
  let logs: string;
  const socket = createServer();
  before(async () => {
    root = mkdtempSync(join(tmpdir(), 'log-files-'));
    logs = join(root, 'log');
    mkdirSync(join(logs, 'pods'), { recursive: true });
    writeFileSync(join(logs, 'messages'), 'hello');
    writeFileSync(join(root, 'shadow'), 'secret');
    symlinkSync('messages', join(logs, 'link'));
    symlinkSync('../shadow', join(logs, 'out'));
    symlinkSync('../log-elsewhere', join(logs, 'dangling'));
    execFileSync('mkfifo', [join(logs, 'pipe')]);
    symlinkSync('pipe', join(logs, 'to-pipe'));
    await new Promise<void>((resolve) => socket.listen(join(logs, 'socket'), resolve));
  });
  after(() => {
    socket.close();
    rmSync(root, { recursive: true });
  });

  for (const path of ['messages', 'link', '/messages', '../messages'])
    it(`${path} is opened`, async () => {
      const file = await openBelow(logs, path);
      assert.equal(await file.readFile('utf8'), 'hello');
      await file.close();
    });

  it('a directory is opened', async () => {
    const dir = await openBelow(logs, 'pods');
    assert.ok((await dir.stat()).isDirectory());
    await dir.close();
  });

  for (const path of ['out', '../shadow', 'dangling', 'socket', 'missing', 'messages/below', 'a\0b'])
    it(`${JSON.stringify(path)} is not there`, async () => {
      await assert.rejects(openBelow(logs, path), { kind: 'notFound' });
      assert.deepEqual(openFiles(root), []);
    });

  it('pipes are not opened, however many ask: the file threads stay free', async () => {
    const asked = Array.from({ length: 16 }, (_, i) => openBelow(logs, i % 2 === 0 ? 'pipe' : 'to-pipe'));
    for (const answer of await Promise.allSettled(asked))
      assert.equal(answer.status === 'rejected' && (answer.reason as { kind?: string }).kind, 'notFound');
    assert.ok((await stat('/')).isDirectory());
    assert.deepEqual(openFiles(root), []);
  });
});
