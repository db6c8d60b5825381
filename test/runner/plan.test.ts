// The plan of a test run, from what the files say of themselves and from durations.
// runs: gate
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { deal, longestFirst, parseTestFile, planRun, readTestFiles } from '../../scripts/test-plan.ts';

const file = (name: string, runs = ''): ReturnType<typeof parseTestFile> =>
  parseTestFile(name, `// A test.\n${runs === '' ? '' : `// runs: ${runs}\n`}import 'x';\n`);

describe('what a file says of itself', () => {
  it('is read from its opening comment alone', () => {
    const text = '// Text.\n// runs: gate, alone\n// shows: pods: a, b\nimport a;\n// runs: nothing\n';
    assert.deepEqual(parseTestFile('test/a.test.ts', text), {
      file: 'test/a.test.ts',
      words: new Set(['gate', 'alone']),
      shows: ['pods: a, b'],
    });
  });
  it('is refused with an unknown word', () => {
    assert.throws(
      () => file('test/a.test.ts', 'gate, alnoe'),
      /test\/a\.test\.ts: "\/\/ runs: alnoe" is unknown; known: gate/,
    );
  });
});

it('orders files by duration, unknown ones first, equal ones by name', () => {
  assert.deepEqual(longestFirst(['a', 'b', 'c', 'd', 'e'], { a: 1, b: 9, d: 1 }), ['c', 'e', 'b', 'a', 'd']);
});

it('deals files out so that each process has about the same to do', () => {
  assert.deepEqual(deal(['a', 'b', 'c', 'd'], 2, { a: 5, b: 3, c: 2, d: 1 }), [
    ['a', 'd'],
    ['b', 'c'],
  ]);
});

describe('a plan', () => {
  const files = [
    file('src/a.test.ts'),
    file('src/b.test.ts', 'own process'),
    file('test/all.test.ts'),
    file('test/alone.test.ts', 'gate, alone'),
    file('test/gate.test.ts', 'gate'),
    file('test/ports-1.test.ts', 'gate, default ports'),
    file('test/ports-2.test.ts', 'default ports'),
    file('test/rest.test.ts', 'at rest'),
    file('test/spare.test.ts', 'gate, spare time'),
  ];
  it('of the gate has what names itself part of it', () => {
    assert.deepEqual(planRun(files, 'gate', 1, {}), {
      unitTests: [['src/a.test.ts']],
      ownProcess: ['src/b.test.ts'],
      lanes: {
        usual: [['test/ports-1.test.ts'], ['test/gate.test.ts']],
        'at rest': [],
        'spare time': [['test/spare.test.ts']],
        alone: [['test/alone.test.ts']],
      },
    });
  });
  it('of everything has every file once', () => {
    const { unitTests, ownProcess, lanes } = planRun(files, 'all', 2, {});
    const planned = [...unitTests.flat(), ...ownProcess, ...Object.values(lanes).flat(2)];
    assert.deepEqual(planned.toSorted(), files.map((one) => one.file).toSorted());
  });
});

it('shows each row of "What works" on a real runtime', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const table = readme.slice(readme.indexOf('## What works'), readme.indexOf('## Figures'));
  // A row that does not work here has nothing to show.
  const rows = [...table.matchAll(/^\| (.+?) \| (.+?) \|$/gm)].filter(
    ([, name, state]) => !['feature', '---'].includes(name ?? '') && state !== 'no' && !/ by hand /.test(state ?? ''),
  );
  const shown = new Map(readTestFiles().flatMap((test) => test.shows.map((row) => [row, test] as const)));
  assert.deepEqual(
    rows.map(([, name]) => name ?? '').filter((name) => !shown.get(name)?.words.has('gate')),
    [],
    'rows without a gate file',
  );
  const names = new Set(rows.map(([, name]) => name));
  assert.deepEqual(
    [...shown.keys()].filter((row) => !names.has(row)),
    [],
    'rows that the README does not have',
  );
});
