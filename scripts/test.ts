// `npm test`, the gate: the checks, all unit tests, and of the tests in test/ the files that name themselves part of it.
// `npm run test:all`: everything. A file says itself how it runs (scripts/test-plan.ts). A file that fails runs once more, alone,
// at the end: BROKEN when it fails again; UNSTEADY when it passes, which leaves the run green unless it is --strict.
//   npm test -- <file>…      some files
//   npm test -- --strict     UNSTEADY is red
//   npm run test:fast        the checks and all unit tests, for the inner loop; random input is tried a fifth as often
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { leftBehind, traces } from './left-behind.ts';
import { ensurePackages } from './system-packages.ts';
import { planRun, readTestFiles, type Durations, type Job, type Lane } from './test-plan.ts';
import { firstFailure, report, summary, type Verdict } from './test-report.ts';
import { MINUTE, runCommand, runTests, type Outcome, type Priority } from './test-run.ts';

const UNIT_TEST_PROCESSES = 3;
const SIDE_BY_SIDE = 2;
/** Limits of a file; one that computes in spare time waits for the others. */
const LONGEST: Readonly<Record<Priority, number>> = { usual: 10 * MINUTE, low: 20 * MINUTE };

const CACHE = join(import.meta.dirname, '..', 'node_modules', '.cache', 'kubelet-ts');
/** Durations of the last run here; a fresh clone has those on record, which `--record` writes. */
const LAST_DURATIONS = join(CACHE, 'test-durations.json');
const RECORDED_DURATIONS = join(import.meta.dirname, '..', 'test', 'durations.json');

const readJson = (file: string): Durations => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Durations;
  } catch {
    return {};
  }
};
const knownDurations = (): Durations => ({ ...readJson(RECORDED_DURATIONS), ...readJson(LAST_DURATIONS) });

function writeDurations(outcomes: readonly Outcome[], isRecord: boolean): void {
  const seconds = (ms: number): number => Math.max(0.1, Math.round(ms / 100) / 10);
  const now = outcomes.flatMap(({ files, tookMs, results }) =>
    files.length === 1
      ? files.map((file) => [file, seconds(tookMs)] as const)
      : Object.entries(results?.files ?? {}).map(([file, ms]) => [file, seconds(ms)] as const),
  );
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(LAST_DURATIONS, JSON.stringify({ ...readJson(LAST_DURATIONS), ...Object.fromEntries(now) }));
  if (!isRecord) return;
  const all = Object.entries({ ...readJson(RECORDED_DURATIONS), ...Object.fromEntries(now) });
  const sorted = all.filter(([file]) => existsSync(file)).toSorted(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(RECORDED_DURATIONS, `${JSON.stringify(Object.fromEntries(sorted), undefined, 2)}\n`);
}

/** Takes job after job until none is left; several lanes may share them. */
async function runLane(waiting: Job[], priority: Priority = 'usual'): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let job = waiting.shift(); job !== undefined; job = waiting.shift())
    for (const file of job)
      outcomes.push(report(await runTests(file, [file], { isolation: 'own process', priority }, LONGEST[priority])));
  return outcomes;
}

/** Starting a process for each unit test file would cost more than the tests themselves. */
async function runUnitTests(parts: readonly Job[], ownProcess: Job): Promise<Outcome[]> {
  const run = async (name: string, files: Job, isolation: 'own process' | 'shared process'): Promise<Outcome> =>
    report(await runTests(`unit tests, ${name}`, files, { isolation, priority: 'usual' }, LONGEST.usual));
  return Promise.all([
    ...parts.map((files, i) => run(`part ${i + 1}`, files, 'shared process')),
    run('own process', ownProcess, 'own process'),
  ]);
}

const runChecks = async (): Promise<Outcome> =>
  report(await runCommand('checks', 'sh', ['scripts/run', 'check'], 10 * MINUTE));

async function runScenarios(lanes: Readonly<Record<Lane, readonly Job[]>>): Promise<Outcome[]> {
  const usual = [...lanes.usual];
  const beside = await Promise.all([
    ...Array.from({ length: SIDE_BY_SIDE }, () => runLane(usual)),
    runLane([...lanes['at rest']]).then(async (rested) => [...rested, ...(await runLane(usual))]),
    runLane([...lanes['spare time']], 'low'),
  ]);
  return [...beside.flat(), ...(await runLane([...lanes.alone]))];
}

/** The failed files of an outcome; a process that wrote no results failed with all its files. */
function failedFiles({ files, results }: Outcome): readonly string[] {
  const named = [...new Set(results?.failures.map(({ file }) => file) ?? [])].filter((file) => files.includes(file));
  return named.length > 0 ? named : files;
}

/** A second run, alone, tells a defect from a race. */
async function rerunFailed(outcomes: readonly Outcome[]): Promise<Verdict[]> {
  const failed = outcomes.filter(({ ok }) => !ok);
  if (failed.length > 0) console.log('\nonce more, alone:');
  const verdicts: Verdict[] = [];
  for (const outcome of failed) {
    if (outcome.files.length === 0) {
      verdicts.push({ name: outcome.name, first: firstFailure(outcome), second: outcome });
      continue;
    }
    for (const file of failedFiles(outcome)) {
      const second = report(
        await runTests(file, [file], { isolation: 'own process', priority: 'usual' }, LONGEST.usual),
      );
      verdicts.push({ name: file, first: firstFailure(outcome, file), second });
    }
  }
  return verdicts;
}

async function runScope(scope: 'fast' | 'gate' | 'all'): Promise<Outcome[]> {
  const plan = planRun(readTestFiles(), scope === 'all' ? 'all' : 'gate', UNIT_TEST_PROCESSES, knownDurations());
  const first = [await runChecks(), ...(await runUnitTests(plan.unitTests, plan.ownProcess))];
  return scope === 'fast' ? first : [...first, ...(await runScenarios(plan.lanes))];
}

const options = process.argv.slice(2).filter((arg) => arg.startsWith('--'));
const files = process.argv.slice(2).filter((arg) => !arg.startsWith('--'));
const unknown = options.filter((option) => !['--strict', '--all', '--fast', '--record'].includes(option));
if (unknown.length > 0) throw new Error(`unknown option ${unknown.join(' ')}; known: --strict --all --fast --record`);
const has = (option: string): boolean => options.includes(option);
const scope = has('--all') ? 'all' : has('--fast') ? 'fast' : 'gate';
const begun = performance.now();
if (files.length === 0) await ensurePackages();
// Nothing that an earlier run left in the temporary folder can help or hurt this one.
const folder = mkdtempSync(join(tmpdir(), 'kts-run-'));
process.env['TMPDIR'] = folder;
// Every file is a process of its own that loads much the same code: types are stripped and code is compiled once.
process.env['NODE_COMPILE_CACHE'] ??= CACHE;
if (scope === 'fast') process.env['TEST_FAST'] = '1';
const before = traces(folder);
const outcomes = files.length > 0 ? await runLane([files]) : await runScope(scope);
const verdicts = await rerunFailed(outcomes);
if (files.length === 0) writeDurations(outcomes, has('--record'));
// Some files may run beside another run, whose traces are not theirs.
const left = files.length > 0 ? [] : await leftBehind(folder, before);
rmSync(folder, { recursive: true, force: true });
const tookMs = performance.now() - begun;
process.exit(summary({ outcomes, verdicts, leftBehind: left, isStrict: has('--strict'), tookMs }) ? 0 : 1);
