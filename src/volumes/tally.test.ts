import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Tally } from './tally.ts';

it('a file with several names is counted once, as long as it is remembered; then every name counts its share', () => {
  type Entry = readonly [blocks: number, names?: number, inode?: number];
  const rows: readonly [what: string, entries: readonly Entry[], bytes: number, inodes: number][] = [
    ['nothing', [], 0, 0],
    [
      'files with one name each',
      [
        [8, 1, 1],
        [8, 1, 2],
      ],
      8192,
      2,
    ],
    ['directories, whatever their inode', [[8], [8]], 8192, 2],
    [
      'one file by two names',
      [
        [8, 2, 5],
        [8, 2, 5],
      ],
      4096,
      1,
    ],
    ['one of its names is elsewhere', [[8, 2, 5]], 4096, 1],
    [
      'more than are remembered',
      [
        [8, 2, 5],
        [8, 2, 6],
        [8, 2, 7],
        [8, 2, 6],
        [8, 2, 5],
        [8, 2, 7],
      ],
      12288,
      3,
    ],
  ];
  for (const [what, entries, bytes, inodes] of rows) {
    const tally = new Tally(2);
    for (const entry of entries) tally.add(...entry);
    assert.deepEqual(tally.size, { bytes, inodes }, what);
  }
});
