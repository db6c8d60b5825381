// `npm test`: the checks, then every *.test.ts. Unit tests sit beside their source and run side by side; tests that need
// a real runtime, kernel features or a whole node are in test/ and run one file at a time. Arguments name files to run
// instead of everything.
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { ensurePackages } from './system-packages.ts';

const MINUTE = 60_000;
/** A test file that never ends must not hold up everything for ever. */
const LIMIT_MS = 45 * MINUTE;
const run = (command: string, args: readonly string[]): boolean => {
  const { status, signal } = spawnSync(command, args, { stdio: 'inherit', timeout: LIMIT_MS, killSignal: 'SIGKILL' });
  if (signal !== null) console.error(`kubelet-ts: ended by ${signal} after ${LIMIT_MS / MINUTE} minutes`);
  return status === 0;
};
const test = (files: readonly string[], ...options: readonly string[]): boolean =>
  files.length === 0 ||
  run(process.execPath, [
    '--disable-warning=ExperimentalWarning',
    '--test',
    `--test-timeout=${5 * MINUTE}`,
    ...options,
    ...files,
  ]);

const named = process.argv.slice(2);
if (named.length > 0) process.exit(test(named, '--test-concurrency=1') ? 0 : 1);

await ensurePackages();
const checked = run('sh', ['scripts/run', 'check']);
const unit = test(globSync('src/**/*.test.ts').sort());
const whole = test(globSync('test/**/*.test.ts').sort(), '--test-concurrency=1');
process.exit(checked && unit && whole ? 0 : 1);
