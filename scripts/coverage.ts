// `npm run coverage`: how much of `src` the unit tests take, and which files that decide something have branches that no
// table reaches: it fails when one is below the bound. A file decides when its opening comment says that it is pure.
//   npm run coverage -- src/runtime src/status     only these folders, by their own tests
import { globSync, readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { run } from 'node:test';
import { readTestFiles } from './test-plan.ts';

const BOUND = 95;
/** A test that never ends is named, like one that fails. */
const TEST_MS = 300_000;

type FileCoverage = {
  readonly path: string;
  readonly totalBranchCount: number;
  readonly coveredBranchCount: number;
  readonly totalLineCount: number;
  readonly coveredLineCount: number;
  readonly branches: readonly { readonly line: number; readonly count: number }[];
};

const opening = (file: string): string => /^(?:\/\/[^\n]*\n)*/.exec(readFileSync(file, 'utf8'))?.[0] ?? '';
const hasCode = (file: string): boolean =>
  /^(?:export )?(?:async )?(?:const|let|function|class)\b/m.test(readFileSync(file, 'utf8'));
const isDecision = (file: string): boolean => /\bpure(?:ly)?\b/i.test(opening(file)) && hasCode(file);
const percent = (covered: number, total: number): number => (total === 0 ? 100 : (100 * covered) / total);
const shown = (value: number): string => `${value.toFixed(1).padStart(5)} %`;

const folders = process.argv.slice(2).map((folder) => folder.replace(/\/*$/, '/'));
const isWanted = (file: string): boolean => folders.length === 0 || folders.some((folder) => file.startsWith(folder));
// All files share one process, which a few of them cannot.
const files = readTestFiles()
  .filter(({ words }) => !words.has('own process'))
  .map(({ file }) => file)
  .filter((file) => file.startsWith('src/') && isWanted(file));
let failed = 0;
let found: readonly FileCoverage[] = [];
const stream = run({
  files,
  isolation: 'none',
  timeout: TEST_MS,
  coverage: true,
  coverageIncludeGlobs: folders.length === 0 ? ['src/**/*.ts'] : folders.map((folder) => `${folder}**/*.ts`),
  coverageExcludeGlobs: ['src/**/*.test.ts', 'src/**/*.fixture.ts', 'src/**/gen/**'],
});
stream.on('test:fail', ({ name, file, details }) => {
  failed++;
  console.error(`FAILED ${file === undefined ? '' : relative('.', file)}: ${name}: ${details.error.message}`);
});
stream.on('test:coverage', ({ summary }) => (found = summary.files));
stream.resume();
await new Promise((resolve) => stream.once('close', resolve));

const sum = (pick: (file: FileCoverage) => number): number => found.reduce((total, file) => total + pick(file), 0);
const lines = percent(
  sum((f) => f.coveredLineCount),
  sum((f) => f.totalLineCount),
);
const branches = percent(
  sum((f) => f.coveredBranchCount),
  sum((f) => f.totalBranchCount),
);
console.log(`\nby unit tests, ${found.length} files: lines ${shown(lines)}, branches ${shown(branches)}`);

const known = new Map(found.map((file) => [resolve(file.path), file]));
const decisions = globSync('src/**/*.ts').filter(
  (file) => isWanted(file) && !/\.(test|fixture)\.ts$|\/gen\/|^src\/devcluster\//.test(file) && isDecision(file),
);
const below = decisions
  .sort()
  .map((file) => ({ file, coverage: known.get(resolve(file)) }))
  .map(({ file, coverage }) => ({
    file,
    covered: coverage === undefined ? 0 : percent(coverage.coveredBranchCount, coverage.totalBranchCount),
    lines: [...new Set((coverage?.branches ?? []).filter((b) => b.count === 0).map((b) => b.line))],
  }))
  .filter(({ covered }) => covered < BOUND);
console.log(`\n${decisions.length} files decide something; below ${BOUND} % of their branches: ${below.length}`);
for (const { file, covered, lines } of below) console.log(`  ${shown(covered)}  ${file}: ${lines.join(' ')}`);
process.exit(failed === 0 && below.length === 0 ? 0 : 1);
