import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { ChildCommands } from './commands.ts';

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
    const commands = new ChildCommands({ clock: systemClock }, { timeoutMs: 300 });
    await assert.rejects(commands.run('sh', ['-c', `sleep 60 & echo $! > ${file}; wait`], signal), {
      kind: 'deadline',
      message: 'sh did not end within 300ms',
    });
    const pid = readFileSync(file, 'utf8').trim();
    const isAlive = (): boolean =>
      existsSync(`/proc/${pid}/stat`) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
    for (let i = 0; i < 200 && isAlive(); i++) await systemClock.sleep(10, signal);
    assert.equal(isAlive(), false);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
