import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { libraryEntries } from './image.ts';

test('a program that needs libraries brings them and their folders, a static one none', () => {
  const entries = libraryEntries('/bin/sh');
  const files = entries.filter((e) => e.type === 'file').map((e) => e.path);
  assert.ok(
    files.some((path) => path.endsWith('/libc.so.6')),
    files.join(' '),
  );
  assert.ok(
    files.some((path) => /\/ld-linux[^/]*$/.test(path)),
    files.join(' '),
  );
  for (const path of files) assert.ok(entries.some((e) => e.type === 'dir' && path.startsWith(`${e.path}/`)));
  assert.deepEqual(libraryEntries('/nowhere'), []);
});
