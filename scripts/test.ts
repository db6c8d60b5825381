// `npm test`: the checks, then every *.test.ts. Unit tests sit beside their source and run in parallel; tests that need
// the real container runtime are in test/ and run one file at a time.
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';

const only = process.argv.slice(2);
const run = (args: readonly string[]): number => spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1;

let failed = 0;
if (only.length > 0) process.exit(run(['--test', '--test-force-exit', ...only]));
failed |= spawnSync('sh', ['scripts/run', 'check'], { stdio: 'inherit' }).status ?? 1;
const unit = globSync('src/**/*.test.ts').sort();
if (unit.length > 0) failed |= run(['--test', '--test-force-exit', ...unit]);
const node = globSync('test/**/*.test.ts').sort();
if (node.length > 0) failed |= run(['--test', '--test-force-exit', '--test-concurrency=1', ...node]);
process.exit(failed);
