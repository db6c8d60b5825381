import assert from 'node:assert/strict';
import { test } from 'node:test';
import { absolutePath } from './paths.ts';

test('paths inside containers begin at their root', () => {
  const rows: [string, string][] = [
    ['/dev/termination-log', '/dev/termination-log'],
    ['dev/log', '/dev/log'],
    ['//a/./b/../c/', '/a/c'],
    ['../a', '/a'],
    ['/', '/'],
    ['', '/'],
  ];
  for (const [path, want] of rows) assert.equal(absolutePath(path), want, path);
});
