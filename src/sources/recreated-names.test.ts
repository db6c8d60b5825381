import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecreatedNames } from './recreated-names.ts';

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
];

for (const [what, renames, recreated] of rows)
  test(what, () => {
    const names = new RecreatedNames();
    for (const [name, at] of renames) names.renamed(name, at, true);
    assert.deepEqual([...names.take()], recreated);
    assert.deepEqual([...names.take()], [], 'told once');
  });

test('a new file is moved over before long', () => {
  const names = new RecreatedNames();
  names.renamed('a', 0, false);
  names.renamed('a', 5, true);
  assert.deepEqual([...names.take()], []);
});
