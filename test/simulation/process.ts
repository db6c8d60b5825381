// Runs simulated machines in processes of their own, for tests, and reads what they print.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

const HERE = import.meta.dirname;
export const MINUTE = 60_000;
const SEED = Number(process.env['SIMULATION_SEED'] ?? Date.now() % 1_000_000);

export type Ended = { readonly code: number; readonly text: string };

const MACHINE = ['--disable-warning=ExperimentalWarning', '--import', join(HERE, 'register.ts'), join(HERE, 'main.ts')];

export function run(timeout: number, command: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, command, { timeout, maxBuffer: 2 ** 26 }, (err, stdout, stderr) => {
      resolve({ code: err === null ? 0 : Number(err.code ?? 99), text: `${stdout}${stderr}`.trim() });
    });
  });
}

export const simulate = (timeout: number, ...args: readonly string[]): Promise<Ended> =>
  run(timeout, [...MACHINE, ...args]);

export const again = (args: readonly string[]): string => `again: npm run simulate -- ${args.join(' ')} --trace`;
export const digestOf = ({ text }: Ended): string => /digest (\w+)/.exec(text)?.[1] ?? 'none';
export const violated = ({ text }: Ended): string => /VIOLATED at [^:]*: ([^:]+):/.exec(text)?.[1] ?? 'nothing';

/** Processor time of a low priority may take much longer by the clock. */
export const limitOf = (seconds: number): number => MINUTE + 20_000 * seconds;

/** Fresh seeds for so many seconds of processor time; the one that fails is printed with the command that runs it again. */
export async function liveThroughFreshSeeds(t: TestContext, seconds: number, parts: string): Promise<void> {
  const world = ['--until=15m', '--pods=6', '--life=3m', '--fault-every=2m', `--with=${parts}`];
  const outcome = await simulate(limitOf(seconds), `--seed=${SEED}`, `--seconds=${seconds}`, ...world);
  t.diagnostic(outcome.text);
  const failed = /^seed (\d+):.*\n {2}VIOLATED/m.exec(outcome.text)?.[1] ?? SEED;
  assert.equal(outcome.code, 0, `${outcome.text}\n${again([`--seed=${failed}`, ...world])}`);
  assert.match(outcome.text, /^seed /);
}
