import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { it } from 'node:test';
import { pathsBelow } from './paths.ts';
import { endLeftChildren } from './state.ts';

it('ends a child too that was being started when its supervisor was killed', async (t) => {
  const paths = pathsBelow(`/nowhere/left-children-${process.pid}`);
  const supervisor = join(import.meta.dirname, 'supervisor.ts');
  // It looks like the supervisor until it is told to be another program.
  const program = 'read _; echo is; exec sh -c "read _" "$0" "--directory=$2" end';
  const child = spawn('sh', ['-c', program, supervisor, paths.directory, paths.csiVolumes], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  let isOver = false;
  const ending = endLeftChildren(paths, 5000).then(() => (isOver = true));
  child.stdin.write('\n');
  await once(child.stdout, 'data');
  assert.equal(isOver, false, 'it was waited for');
  await ended;
  await ending;
});
