import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readFiles } from './read-files.ts';

test('files are read whole, however long; those that are not there are left out', async (t) => {
  const dir = mkdtempSync('/tmp/kts-read-files-');
  t.after(() => rmSync(dir, { recursive: true }));
  const texts = new Map([
    ['empty', ''],
    ['short', 'rbytes=1\n'],
    ['of one buffer', 'x'.repeat(16 * 1024)],
    ['of many disks', '254:0 rbytes=123456789 wbytes=123456789\n'.repeat(1000)],
  ]);
  const paths = new Map([...texts].map(([name, text]) => [join(dir, name), text]));
  for (const [path, text] of paths) writeFileSync(path, text);
  assert.deepEqual(await readFiles([...paths.keys(), join(dir, 'absent')]), paths);
});
