// A node lives through simulated hours in a process of its own: nothing violated, and the same seed gives the same run.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);
const HERE = import.meta.dirname;

async function simulate(...args: readonly string[]): Promise<string> {
  const command = ['--import', join(HERE, 'register.ts'), join(HERE, 'main.ts'), ...args];
  const { stdout } = await run(process.execPath, ['--disable-warning=ExperimentalWarning', ...command], {
    timeout: 300_000,
    maxBuffer: 64 * 1024 * 1024,
  }).catch((err: { stdout?: string; stderr?: string }) => {
    throw new Error(`${err.stdout ?? ''}\n${err.stderr ?? ''}`);
  });
  return stdout.trim();
}

const digestOf = (text: string): string => /digest (\w+)/.exec(text)?.[1] ?? 'none';

describe('a simulated node', { concurrency: false }, () => {
  it('runs pods of every kind for hours, twice the same', async (t) => {
    const first = await simulate('--seed=1', '--until=30m', '--calm');
    t.diagnostic(first);
    assert.equal(digestOf(await simulate('--seed=1', '--until=30m', '--calm')), digestOf(first));
    assert.match(digestOf(first), /^[0-9a-f]{16}$/);
  });
});
