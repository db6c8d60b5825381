import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { KubeletError } from '../../lib/errors.ts';
import { memoryMaySwap } from './noswap.ts';

const dir = mkdtempSync(join(tmpdir(), 'noswap-'));
after(() => rmSync(dir, { recursive: true }));

test('a directory that takes nothing is no reason not to start', async () => {
  const mounting = { mount: () => assert.fail('nowhere to mount'), unmount: () => undefined };
  assert.equal(await memoryMaySwap({ swapBytes: 1 }, join(dir, 'missing'), mounting), true);
});

for (const [what, swapBytes, refused, expected, calls] of [
  ['no swap', 0, false, false, []],
  ['swap, and a kernel that keeps tmpfs out of it', 1, false, false, ['mount noswap', 'unmount']],
  ['swap, and one that cannot', 1, true, true, ['mount noswap']],
] as const)
  test(`${what}: nothing is left behind`, async () => {
    const made: string[] = [];
    const mounting = {
      mount: (_source: string, target: string, _type: string, _flags: number, options: string): void => {
        assert.ok(target.startsWith(`${dir}/`));
        made.push(`mount ${options}`);
        if (refused) throw new KubeletError('invalid', 'mount: EINVAL');
      },
      unmount: (): void => void made.push('unmount'),
    };
    assert.equal(await memoryMaySwap({ swapBytes }, dir, mounting), expected);
    assert.deepEqual(made, calls);
    assert.deepEqual(readdirSync(dir), []);
  });
