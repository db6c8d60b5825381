import assert from 'node:assert/strict';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { KubeletError } from './errors.ts';
import { systemErrorText } from './system-error-text.ts';

const dir = mkdtempSync(join(tmpdir(), 'error-text-'));
after(() => rmSync(dir, { recursive: true }));
writeFileSync(join(dir, 'file'), '');

function errorOf(work: () => unknown): unknown {
  try {
    work();
  } catch (err) {
    return err;
  }
  return assert.fail('it works');
}

function throughDescriptor(): void {
  const fd = openSync(dir, 'r');
  try {
    mkdirSync(`/proc/self/fd/${fd}/file`);
  } finally {
    closeSync(fd);
  }
}

describe('the text of an error', () => {
  const rows: readonly [string, unknown, string][] = [
    ['a file', errorOf(() => readFileSync(join(dir, 'x'))), `open ${dir}/x: no such file or directory`],
    ['in words of the system', errorOf(() => mkdirSync(dir)), `mkdir ${dir}: file exists`],
    ['through a descriptor', errorOf(throughDescriptor), 'mkdir file: file exists'],
    [
      'two files',
      errorOf(() => renameSync(join(dir, 'a'), join(dir, 'b'))),
      `rename ${dir}/a ${dir}/b: no such file or directory`,
    ],
    ['no system call', new Error('ENOENT: why, not'), 'ENOENT: why, not'],
    ['an error of our own', new KubeletError('internal', 'why'), 'why'],
    ['no error at all', 'why', 'why'],
  ];
  for (const [name, err, text] of rows) it(name, () => assert.equal(systemErrorText(err), text));
});
