// The lock file, as the npm of Debian 12 reads it, which runs on Node 18: a package that is optional and asks for a newer Node
// is left out without a word, and with it the linter or the formatter. They run on the pinned Node, whatever npm runs on;
// `npm install` writes what they ask for into the lock file again, and it is to be taken out.
// runs: gate
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';

type Entry = { readonly optional?: boolean; readonly engines?: { readonly node?: string } };

it('names no optional package that is left out by the Node of Debian 12', () => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Entry> };
  const leftOut = Object.entries(packages).filter(
    ([, { optional, engines }]) => optional === true && !/^>=1[0-8]\b/.test(engines?.node ?? '>=10'),
  );
  assert.deepEqual(
    leftOut.map(([name]) => name),
    [],
  );
});
