// Archives, read by their own heads: names are whole or refused.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tar, type TarEntry } from './tar.ts';

const text = (archive: Buffer, at: number, length: number): string =>
  archive.toString('utf8', at, at + length).replace(/\0[^]*$/, '');
const rows: readonly (readonly [string, (name: string) => TarEntry, at: number, more: string])[] = [
  ['a file', (path) => ({ path, type: 'file', mode: 0o644, data: Buffer.from('data') }), 0, ''],
  ['a directory', (path) => ({ path, type: 'dir', mode: 0o755 }), 0, '/'],
  ['a link', (path) => ({ path, type: 'link', target: 't' }), 0, ''],
  ["a link's target", (target) => ({ path: 'p', type: 'link', target }), 157, ''],
];

describe('names in an archive', () => {
  for (const [what, entry, at, more] of rows)
    it(`of ${what}`, () => {
      for (const name of ['n', 'ü'.repeat(20), 'x'.repeat(99 - more.length), 'x'.repeat(100 - more.length)])
        assert.equal(text(tar([entry(name)]), at, 100), name + more);
      for (const name of ['x'.repeat(101 - more.length), 'ü'.repeat(51), 'x'.repeat(1000)])
        assert.throws(() => tar([entry(name)]), /path too long/);
    });

  it('each file has its data, in whole blocks', () => {
    const archive = tar([
      { path: 'a', type: 'file', mode: 0o600, data: Buffer.alloc(513, 'x') },
      { path: 'b', type: 'file', mode: 0o600, data: Buffer.alloc(0) },
    ]);
    assert.equal(archive.length, 512 + 1024 + 512 + 1024);
    assert.equal(text(archive, 512, 513), 'x'.repeat(513));
    assert.equal(text(archive, 1536, 100), 'b');
    assert.equal(Number.parseInt(text(archive, 124, 11), 8), 513);
  });
});
