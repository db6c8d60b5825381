import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MountTable, parseMountInfo } from '../host/mounts/mount-table.ts';
import { FilesystemStats } from './filesystem-stats.ts';

const signal = new AbortController().signal;
const table = new MountTable(
  parseMountInfo('22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:26 / /pods/u/nfs rw - nfs4 srv:/x rw\n'),
);
const mounted = (hostPath: string) => ({ hostPath, readOnly: false, selinuxRelabel: false });

test('a file system that may not answer is asked by a child, a local one is not', async () => {
  const ran: string[] = [];
  let answer = { code: 0, output: '4096 100 40 30 1000 900' };
  const stats = new FilesystemStats({
    mounter: { table: () => Promise.resolve(table) },
    commands: {
      run: (command, args) => {
        ran.push([command, ...args].join(' '));
        return Promise.resolve(answer);
      },
    },
  });
  assert.deepEqual(await stats.of(mounted('/pods/u/nfs'), signal), {
    capacityBytes: 409_600,
    usedBytes: 245_760,
    availableBytes: 122_880,
    inodes: 1000,
    inodesFree: 900,
    inodesUsed: 100,
    source: 'statfs',
  });
  assert.deepEqual(ran, ['stat -f -c %S %b %f %a %c %d -- /pods/u/nfs']);
  const local = await stats.of(mounted('/tmp'), signal);
  assert.ok((local?.capacityBytes ?? 0) > 0);
  assert.equal(ran.length, 1);
  answer = { code: 1, output: 'Stale file handle' };
  await assert.rejects(stats.of(mounted('/pods/u/nfs'), signal), /Stale file handle/);
  assert.equal(await stats.of({ ...mounted(''), devicePath: '/dev/no-such-device' }, signal), undefined);
});
