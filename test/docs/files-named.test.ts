// Documentation that names files is true as long as the files exist.
// runs: gate
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '..', '..');
/** Named as what no file is to be called. */
const NONE = ['utils.ts'];

/** A file below `src` or the project, by its path or, after another one of its folder, by its name alone. */
function exists(name: string): boolean {
  const places = [`src/**/${name}`, name, `scripts/${name}`, `test/**/${name}`];
  return places.some((place) => globSync(place, { cwd: root }).length > 0);
}

for (const page of ['docs/ARCHITECTURE.md', 'docs/GLOSSARY.md', 'CONTRIBUTING.md'])
  test(`every file that ${page} names exists`, () => {
    const text = readFileSync(join(root, page), 'utf8');
    const named = [...text.matchAll(/`([\w./*-]+\.ts)`/g)].map((match) => match[1] ?? '');
    assert.ok(named.length > 10, 'it names files');
    assert.deepEqual(
      named.filter((name) => !NONE.includes(name) && !exists(name)),
      [],
    );
  });

test('docs/ARCHITECTURE.md lists every place that starts a process', () => {
  const text = readFileSync(join(root, 'docs/ARCHITECTURE.md'), 'utf8');
  const [, section = ''] = /## Processes the agent starts\n(.*?)\n## /s.exec(text) ?? [];
  const listed = [...section.matchAll(/\| `([\w./-]+\.ts)` \|$/gm)].map((match) => match[1] ?? '');
  const starts = globSync('**/*.ts', { cwd: join(root, 'src'), exclude: ['**/*.test.ts', 'devcluster/**'] }).filter(
    (file) => readFileSync(join(root, 'src', file), 'utf8').includes("from 'node:child_process'"),
  );
  assert.deepEqual([...new Set(listed)].sort(), starts.sort());
});
