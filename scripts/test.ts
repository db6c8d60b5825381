// `npm test`: the checks, then every *.test.ts. Unit tests sit beside their source and run all at once. Tests that need a
// real runtime, kernel features or a whole node are in test/: most of them wait more than they work, so two files run side
// by side; those that measure run alone. A file that fails is run once more at the end, alone, because two cores that are
// busy with something else can make any of them late, and is named as unsteady if it then passes. Arguments name files to
// run instead of everything, without a second try.
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { traces } from './left-behind.ts';
import { ensurePackages } from './system-packages.ts';

const MINUTE = 60_000;
const SIDE_BY_SIDE = 2;
/** What is measured in them would be wrong beside others. */
const ALONE: readonly string[] = ['test/contracts/api-server/load.test.ts', 'test/node/probes.test.ts'];
/** The longest first, so that none of them is left for the end. */
const LONG: readonly string[] = [
  'test/cluster/node.test.ts',
  'test/node/cgroup-v2-guest.test.ts',
  'test/faults/api-server-away.test.ts',
  'test/faults/agent-killed.test.ts',
  'test/cluster/pods.test.ts',
  'test/faults/volumes-killed.test.ts',
  'test/node/golden-node.test.ts',
];

type Outcome = { readonly name: string; readonly ok: boolean; readonly output: string; readonly tookMs: number };

/** Runs a command to its end, or to its limit: a test that never ends must not hold up everything for ever. */
function run(name: string, command: string, args: readonly string[], limitMs: number): Promise<Outcome> {
  const from = performance.now();
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: limitMs, killSignal: 'SIGKILL' });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      if (signal !== null) output += `\nended by ${signal}; the limit is ${limitMs / MINUTE} minutes\n`;
      resolve({ name, ok: code === 0, output, tookMs: performance.now() - from });
    });
  });
}

const test = (name: string, files: readonly string[], limitMs: number): Promise<Outcome> =>
  run(
    name,
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--test', `--test-timeout=${5 * MINUTE}`, ...files],
    limitMs,
  );

/** Node's own count leaves out suites that are skipped as a whole. */
const SKIPPED = /^\s*﹣ .*$/gm;
const count = ({ output }: Outcome, what: 'pass' | 'fail'): number =>
  Number(new RegExp(`^ℹ ${what} (\\d+)$`, 'm').exec(output)?.[1] ?? 0);

/** One line for what went well, with what was skipped and measured; everything for what did not. */
function report(outcome: Outcome): Outcome {
  const { name, ok, output, tookMs } = outcome;
  const tests = count(outcome, 'pass') + count(outcome, 'fail');
  const seconds = (tookMs / 1000).toFixed(1).padStart(6);
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${seconds} s  ${name}${tests > 0 ? ` (${tests} tests)` : ''}`);
  if (!ok) console.log(output.replace(/^/gm, '  | '));
  else for (const [line] of output.matchAll(/^(\s*﹣ .*|\s+ℹ .*)$/gm)) console.log(`  ${line.trim()}`);
  return outcome;
}

async function testFiles(files: readonly string[], lanes: number): Promise<Outcome[]> {
  const waiting = [...files];
  const outcomes: Outcome[] = [];
  const lane = async (): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift())
      outcomes.push(report(await test(file, [file], 10 * MINUTE)));
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return outcomes;
}

async function everything(): Promise<Outcome[]> {
  const outcomes = [report(await run('checks', 'sh', ['scripts/run', 'check'], 10 * MINUTE))];
  outcomes.push(report(await test('unit tests', globSync('src/**/*.test.ts').sort(), 20 * MINUTE)));
  const found = globSync('test/**/*.test.ts').sort();
  const rest = found.filter((file) => !ALONE.includes(file) && !LONG.includes(file));
  const whole = [...(await testFiles([...LONG, ...rest], SIDE_BY_SIDE)), ...(await testFiles(ALONE, 1))];
  const failed = whole.filter(({ ok }) => !ok).map(({ name }) => name);
  if (failed.length > 0) console.log('\nonce more, alone:');
  const again = await testFiles(failed, 1);
  for (const { name, ok } of again) if (ok) console.log(`unsteady, passed the second time: ${name}`);
  return [...outcomes, ...whole.filter(({ ok }) => ok), ...again];
}

const named = process.argv.slice(2);
if (named.length === 0) await ensurePackages();
const tracesBefore = traces();
const begun = performance.now();
const outcomes = named.length > 0 ? await testFiles(named, 1) : await everything();
const failed = outcomes.filter(({ ok }) => !ok);
const sum = (what: 'pass' | 'fail'): number => outcomes.reduce((n, o) => n + count(o, what), 0);
const skipped = outcomes.flatMap(({ output }) => output.match(SKIPPED) ?? []).length;
for (const trace of traces()) if (!tracesBefore.has(trace)) console.log(`left behind: ${trace}`);
console.log(`\ntook ${((performance.now() - begun) / MINUTE).toFixed(1)} minutes`);
for (const { name } of failed) console.log(`FAILED ${name}`);
// What fails without a failed test (the checks, a file that did not end) counts as one.
const failures = Math.max(sum('fail'), failed.length);
console.log(`${sum('pass')} passed, ${failures} failed, ${skipped} skipped`);
process.exit(failed.length === 0 ? 0 : 1);
