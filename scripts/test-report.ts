// What a run of the tests prints: a line for what passed, everything for what did not, and the sums at the end.
export type Outcome = {
  readonly name: string;
  readonly ok: boolean;
  readonly output: string;
  readonly tookMs: number;
};

const SLOWEST = 10;
/** Node's own count leaves out suites that are skipped as a whole. */
const SKIPPED = /^\s*﹣ (.*)$/gm;
/** A test that passed or failed, with its time; the indentation tells suites from what is in them. */
const TIMED = /^(\s*)(?:✔|✖) (.*) \(([\d.]+)ms\)$/gm;

const count = ({ output }: Outcome, what: 'pass' | 'fail'): number =>
  Number(new RegExp(`^ℹ ${what} (\\d+)$`, 'm').exec(output)?.[1] ?? 0);

export function report(outcome: Outcome): Outcome {
  const { name, ok, output, tookMs } = outcome;
  const tests = count(outcome, 'pass') + count(outcome, 'fail');
  const seconds = (tookMs / 1000).toFixed(1).padStart(6);
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${seconds} s  ${name}${tests > 0 ? ` (${tests} tests)` : ''}`);
  if (!ok) console.log(output.replace(/^/gm, '  | '));
  else for (const [line] of output.matchAll(/^(\s*﹣ .*|\s+ℹ .*)$/gm)) console.log(`  ${line.trim()}`);
  return outcome;
}

type TimedTest = { readonly name: string; readonly file: string; readonly ms: number };

/** The tests themselves, not the suites around them, whose time is the sum of theirs. */
function timedTests({ name: file, output }: Outcome): TimedTest[] {
  const end = output.indexOf('\nℹ tests ');
  const lines = [...(end < 0 ? output : output.slice(0, end)).matchAll(TIMED)];
  const isSuite = (i: number): boolean => (lines[i - 1]?.[1]?.length ?? 0) > (lines[i]?.[1]?.length ?? 0);
  return lines.flatMap(([, , name, ms], i) => (isSuite(i) ? [] : [{ name: name ?? '', file, ms: Number(ms) }]));
}

/** True if all is well. The last line counts what passed, failed and was skipped. */
export function summary(outcomes: readonly Outcome[], tookMs: number): boolean {
  const slowest = outcomes
    .flatMap(timedTests)
    .sort((a, b) => b.ms - a.ms)
    .slice(0, SLOWEST);
  if (slowest.length > 0) console.log('\nslowest tests:');
  for (const { name, file, ms } of slowest)
    console.log(`  ${(ms / 1000).toFixed(1).padStart(6)} s  ${file}: ${name.slice(0, 100)}`);
  const skipped = outcomes.flatMap(({ name, output }) =>
    [...output.matchAll(SKIPPED)].map(([, what]) => `${name}: ${what ?? ''}`),
  );
  for (const line of skipped) console.log(`skipped ${line}`);
  const failed = outcomes.filter(({ ok }) => !ok);
  for (const { name } of failed) console.log(`FAILED ${name}`);
  console.log(`\ntook ${(tookMs / 60_000).toFixed(1)} minutes`);
  const sum = (what: 'pass' | 'fail'): number => outcomes.reduce((n, o) => n + count(o, what), 0);
  // What fails without a failed test (the checks, a file that did not end) counts as one.
  console.log(`${sum('pass')} passed, ${Math.max(sum('fail'), failed.length)} failed, ${skipped.length} skipped`);
  return failed.length === 0;
}
