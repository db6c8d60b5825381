// Which program mounts what.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChildMounts } from './child-mounts.ts';
import type { HostCommands } from './commands.ts';
import { MountTable } from './mount-table.ts';

const { signal } = new AbortController();

function bench(mounterPath: string, code = 0): { calls: string[]; mounts: ChildMounts } {
  const calls: string[] = [];
  const commands: HostCommands = {
    run: async (command, args) => {
      calls.push([command, ...args].join(' '));
      return { code, output: 'no' };
    },
  };
  const mounter = { table: async () => new MountTable([]) };
  return { calls, mounts: new ChildMounts({ commands, mounter }, { mounterPath }) };
}

test('a mounter of the node mounts what comes over the network, and nothing else', async () => {
  const { calls, mounts } = bench('/opt/mounter');
  await mounts.mount('nfs', 'srv:/x', '/t', ['ro'], signal);
  await mounts.mount('ext4', '/dev/x', '/t', [], signal);
  await mounts.bind('/s', '/t', [], signal);
  assert.deepEqual(calls, [
    '/opt/mounter mount -t nfs -o ro -- srv:/x /t',
    'mount -t ext4 -- /dev/x /t',
    'mount -o bind -- /s /t',
  ]);
});

test('without one mount(8) does; a failure names the program that failed', async () => {
  const { calls, mounts } = bench('');
  await mounts.mount('nfs', 'srv:/x', '/t', [], signal);
  assert.deepEqual(calls, ['mount -t nfs -- srv:/x /t']);
  await assert.rejects(bench('/opt/mounter', 32).mounts.mount('nfs', 'srv:/x', '/t', [], signal), {
    message:
      'mount failed: exit status 32\nMounting command: /opt/mounter\nMounting arguments: mount -t nfs srv:/x /t\nOutput: no\n',
  });
});
