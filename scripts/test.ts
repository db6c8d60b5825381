// `npm test`: the checks, then every *.test.ts. Unit tests sit beside their source and run side by side. Tests that need a
// real runtime, kernel features or a whole node are in test/ and run one file at a time; such a file that fails is run
// once more at the end, because two cores that are busy with something else can make any of them late, and is named as
// unsteady if it then passes. Arguments name files to run instead of everything, without a second try.
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { ensurePackages } from './system-packages.ts';

const MINUTE = 60_000;

/** A test file that never ends must not hold up everything for ever. */
function run(command: string, args: readonly string[], limitMs: number): boolean {
  const { status, signal } = spawnSync(command, args, { stdio: 'inherit', timeout: limitMs, killSignal: 'SIGKILL' });
  if (signal !== null) console.error(`kubelet-ts: ended by ${signal} after ${limitMs / MINUTE} minutes`);
  return status === 0;
}

const test = (files: readonly string[], limitMs: number): boolean => {
  const options = ['--disable-warning=ExperimentalWarning', '--test', `--test-timeout=${5 * MINUTE}`];
  return files.length === 0 || run(process.execPath, [...options, ...files], limitMs);
};

function testOneByOne(files: readonly string[], tries: number): { passed: number; failed: string[] } {
  let failed = [...files];
  for (let attempt = 1; attempt <= tries && failed.length > 0; attempt++) {
    const again = failed;
    failed = again.filter((file) => {
      console.log(`\n=== ${file}${attempt > 1 ? ' (once more)' : ''}`);
      return !test([file], 10 * MINUTE);
    });
    if (attempt > 1)
      for (const file of again) if (!failed.includes(file)) console.log(`unsteady, passed the second time: ${file}`);
  }
  return { passed: files.length - failed.length, failed };
}

const named = process.argv.slice(2);
if (named.length > 0) process.exit(testOneByOne(named, 1).failed.length === 0 ? 0 : 1);

await ensurePackages();
const begun = performance.now();
const checked = run('sh', ['scripts/run', 'check'], 10 * MINUTE);
const unit = test(globSync('src/**/*.test.ts').sort(), 20 * MINUTE);
const whole = testOneByOne(globSync('test/**/*.test.ts').sort(), 2);
console.log(`\nchecks ${checked ? 'passed' : 'FAILED'}, unit tests ${unit ? 'passed' : 'FAILED'}`);
for (const file of whole.failed) console.log(`FAILED ${file}`);
console.log(`took ${((performance.now() - begun) / MINUTE).toFixed(1)} minutes`);
console.log(
  `${whole.passed + Number(checked) + Number(unit)} passed, ${whole.failed.length + Number(!checked) + Number(!unit)} failed`,
);
process.exit(checked && unit && whole.failed.length === 0 ? 0 : 1);
