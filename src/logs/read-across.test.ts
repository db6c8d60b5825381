import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { systemClock } from '../lib/clock.ts';
import { readAcrossRotation } from './read-across.ts';

const root = mkdtempSync(join(tmpdir(), 'read-across-'));
after(() => rmSync(root, { recursive: true, force: true }));

const lines = (...texts: readonly string[]): string =>
  texts.map((text) => `2026-11-15T03:13:00.5Z stdout F ${text}\n`).join('');

describe('the end of a log', () => {
  for (const [name, current, former, tailLines, expected] of [
    ['that was never rotated', ['a', 'b'], undefined, 5, 'a b'],
    ['that is long enough by itself', ['c', 'd', 'e'], ['a', 'b'], 2, 'd e'],
    ['that goes on in the file before', ['c'], ['a', 'b'], 2, 'b c'],
    ['that is all in the file before', [], ['a', 'b'], 5, 'a b'],
    ['whose file before is compressed', ['c'], 'compressed', 5, 'c'],
  ] as const)
    it(name, async () => {
      const path = join(root, `${name.replaceAll(' ', '-')}.log`);
      writeFileSync(path, lines(...current));
      const before = `${path}.20261115-031300`;
      if (former === 'compressed') writeFileSync(`${before}.gz`, gzipSync(lines('a')));
      else if (former !== undefined) writeFileSync(before, lines(...former));
      const options = { clock: systemClock, tailLines };
      let read = '';
      for await (const chunk of readAcrossRotation(path, options, () => false, new AbortController().signal))
        read += chunk.toString();
      assert.equal(read.trim().replaceAll('\n', ' '), expected);
    });
});
