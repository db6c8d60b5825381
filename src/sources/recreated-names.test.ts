import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecreatedNames } from './recreated-names.ts';

/** Names with a dot in front are of no pod; `change` is no rename. */
const rows: [what: string, renames: [name: string, at: number][], recreated: string[]][] = [
  ['a file is moved over another', [['a', 0]], []],
  [
    'a file is removed and written again',
    [
      ['a', 0],
      ['a', 5],
    ],
    ['a'],
  ],
  [
    'two files are moved over two others',
    [
      ['a', 0],
      ['b', 5],
    ],
    [],
  ],
  [
    'a file is replaced twice, a while apart',
    [
      ['a', 0],
      ['a', 300],
    ],
    [],
  ],
  [
    'a file is moved over another, then removed and written again',
    [
      ['a', 0],
      ['a', 300],
      ['a', 310],
    ],
    ['a'],
  ],
  [
    'a file is replaced twice in a row by one that was written beside it',
    [
      ['.new', 0],
      ['change', 0],
      ['.new', 1],
      ['a', 1],
      ['.new', 20],
      ['change', 20],
      ['.new', 21],
      ['a', 21],
    ],
    [],
  ],
  [
    'two files are replaced in turns',
    [
      ['.a', 0],
      ['.b', 0],
      ['.a', 1],
      ['a', 1],
      ['.b', 2],
      ['b', 2],
      ['.a', 3],
      ['.a', 4],
      ['a', 4],
    ],
    [],
  ],
  [
    'a file is removed, and another is moved to its place',
    [
      ['a', 0],
      ['.new', 5],
      ['change', 5],
      ['.new', 6],
      ['a', 6],
    ],
    ['a'],
  ],
  [
    'a file is replaced, then removed and written again',
    [
      ['.new', 0],
      ['.new', 1],
      ['a', 1],
      ['a', 10],
      ['a', 11],
    ],
    ['a'],
  ],
  [
    'two files are removed and both written again',
    [
      ['a', 0],
      ['b', 1],
      ['a', 2],
      ['change', 2],
      ['b', 3],
    ],
    ['a', 'b'],
  ],
  [
    'another file comes and goes, and something happens before the file is removed and written again',
    [
      ['.swap', 0],
      ['.swap', 10],
      ['change', 11],
      ['a', 12],
      ['a', 13],
    ],
    ['a'],
  ],
];

for (const [what, renames, recreated] of rows)
  test(what, () => {
    const names = new RecreatedNames();
    for (const [name, at] of renames)
      if (name === 'change') names.changed();
      else names.renamed(name, at, !name.startsWith('.'));
    assert.deepEqual([...names.take()], recreated);
    assert.deepEqual([...names.take()], [], 'told once');
  });

test('a new file is moved over before long', () => {
  const names = new RecreatedNames();
  names.renamed('a', 0, false);
  names.renamed('a', 5, true);
  assert.deepEqual([...names.take()], []);
});
