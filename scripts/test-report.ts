// Text of a test run: one line for a file that passed, the whole output of one that did not, and the sums at the end.
import type { Results, Timed } from './test-results.ts';
import type { Outcome } from './test-run.ts';

const SLOWEST = 10;

/** A failed file after its second run, alone. */
export type Verdict = { readonly name: string; readonly first: string; readonly second: Outcome };
export type Sums = {
  readonly outcomes: readonly Outcome[];
  readonly verdicts: readonly Verdict[];
  readonly leftBehind: readonly string[];
  readonly isStrict: boolean;
  readonly tookMs: number;
};

export function report(outcome: Outcome): Outcome {
  const { name, ok, output, tookMs, results } = outcome;
  const tests = results === undefined ? 0 : results.passed + results.failed;
  const seconds = (tookMs / 1000).toFixed(1).padStart(6);
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${seconds} s  ${name}${tests > 0 ? ` (${tests} tests)` : ''}`);
  if (!ok) console.log(output.replace(/^/gm, '  | '));
  else for (const [line] of output.matchAll(/^(\s*﹣ .*|\s+ℹ .*)$/gm)) console.log(`  ${line.trim()}`);
  return outcome;
}

/** The first failure of a file in one line. */
export function firstFailure({ results, output }: Outcome, file?: string): string {
  const failure = results?.failures.find((one) => file === undefined || one.file === file);
  const text =
    failure === undefined
      ? (output.trim().split('\n').at(-1) ?? 'no output')
      : `${failure.name}: ${failure.message.trim().split('\n')[0] ?? ''}`;
  return text.slice(0, 300);
}

const allResults = (outcomes: readonly Outcome[]): Results[] => outcomes.flatMap(({ results }) => results ?? []);

/** Prints the sums and returns whether the run is green. */
export function summary({ outcomes, verdicts, leftBehind, isStrict, tookMs }: Sums): boolean {
  const results = allResults(outcomes);
  const skipped = results.flatMap((one) => one.skipped);
  for (const { file, name, why } of skipped) console.log(`skipped ${file}: ${name}${why === '' ? '' : `: ${why}`}`);
  const timed = results.flatMap((one): readonly Timed[] => one.slowest).toSorted((a, b) => b.ms - a.ms);
  if (timed.length > 0) console.log('\nslowest tests:');
  for (const { file, name, ms } of timed.slice(0, SLOWEST))
    console.log(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${file}: ${name.slice(0, 100)}`);
  const longest = outcomes.toSorted((a, b) => b.tookMs - a.tookMs).slice(0, 3);
  const unsteady = verdicts.filter(({ second }) => second.ok);
  const broken = verdicts.filter(({ second }) => !second.ok);
  console.log('');
  for (const { name, first } of unsteady) console.log(`UNSTEADY ${name}: ${first}`);
  for (const { name, second } of broken) console.log(`BROKEN ${name}: ${firstFailure(second)}`);
  const failures = broken.length + (isStrict ? unsteady.length : 0);
  const isClean = leftBehind.length === 0;
  const passed = results.reduce((sum, one) => sum + one.passed, 0) + unsteady.length;
  console.log(`${passed} passed, ${failures + (isClean ? 0 : 1)} failed, ${skipped.length} skipped`);
  const seconds = longest.map((one) => `${one.name} ${Math.round(one.tookMs / 1000)} s`);
  console.log(`took ${Math.round(tookMs / 1000)} s; longest: ${seconds.join(', ')}`);
  console.log(`unsteady: ${unsteady.length}${isStrict && unsteady.length > 0 ? ' (red by --strict)' : ''}`);
  for (const trace of leftBehind) console.log(`left behind: ${trace}`);
  if (isClean) console.log('left behind: nothing');
  return failures === 0 && isClean;
}
