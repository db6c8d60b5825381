import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runChild } from './child.ts';

const never = new AbortController().signal;

it('work in the background has the lowest priority, is killed first, and all its output is passed on', async () => {
  let all = '';
  let errors = '';
  const script =
    'until [ "$(nice)" = 19 ]; do sleep 0.01; done; cat /proc/self/oom_score_adj; yes x | head -n 50000; echo no >&2';
  const onStdout = (chunk: Buffer): void => void (all += chunk.toString('latin1'));
  const onStderr = (chunk: Buffer): void => void (errors += chunk.toString('latin1'));
  const { code, stdout, output } = await runChild('sh', ['-c', script], never, { onStdout, onStderr });
  assert.deepEqual([code, stdout.length, output], [0, 0, '']);
  assert.equal(errors, 'no\n');
  assert.equal(all, `1000\n${'x\n'.repeat(50_000)}`);
});
