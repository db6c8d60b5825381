import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { ChildCommands } from './commands.ts';
import { until } from '../../../test/harness/until.ts';

const signal = new AbortController().signal;

test('exit code and output, whatever the code is', async () => {
  const commands = new ChildCommands({ clock: systemClock });
  const { code, output } = await commands.run('sh', ['-c', 'echo out; echo err >&2; exit 3'], signal);
  assert.deepEqual({ code, output }, { code: 3, output: 'out\nerr' });
  await assert.rejects(commands.run('no-such-tool', [], signal), {
    kind: 'unavailable',
    message: /^cannot run no-such-tool: /,
  });
});

test('a command that does not end is killed at its deadline, with the helpers it started', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'kubelet-commands-'));
  const file = join(dir, 'helper');
  try {
    const clock = new ManualClock();
    const commands = new ChildCommands({ clock }, { timeoutMs: 300 });
    const run = commands.run('sh', ['-c', `sleep 60 & echo $! > ${file}; wait`], signal);
    const refused = assert.rejects(run, { kind: 'deadline', message: 'sh did not end within 300ms' });
    const pid = await until(
      'the helper runs',
      () => existsSync(file) && /^\d+(?=\n)/.exec(readFileSync(file, 'utf8'))?.[0],
    );
    await clock.advance(300);
    await refused;
    const isAlive = (): boolean =>
      existsSync(`/proc/${pid}/stat`) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
    await until('the helper is gone', () => !isAlive());
  } finally {
    rmSync(dir, { recursive: true });
  }
});
