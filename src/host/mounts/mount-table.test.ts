import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MountTable, parseMountInfo, seenFrom } from './mount-table.ts';

const TEXT = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /var/lib/kubelet rw shared:2 master:1 - xfs /dev/sdb rw
31 30 0:40 / /var/lib/kubelet/pods/u/volumes/kubernetes.io~secret/s rw,noexec - tmpfs tmpfs rw,size=16k
32 30 0:41 /export /mnt/with\\040space\\134x rw - nfs4 srv:/export rw
33 22 0:42 / /mnt/\u00c3\u00a9 rw - fuse.sshfs host: rw
34 31 0:43 / /var/lib/kubelet/pods/u/volumes/kubernetes.io~secret/s rw - tmpfs tmpfs rw
broken line
`;
const table = new MountTable(parseMountInfo(TEXT));

test('lines are parsed, escapes and bytes of names included', () => {
  assert.equal(table.entries.length, 6);
  assert.equal(table.entries[3]?.target, '/mnt/with space\\x');
  assert.equal(table.entries[3]?.root, '/export');
  assert.equal(table.entries[4]?.target, '/mnt/é');
  assert.deepEqual(
    table.entries.map((e) => e.shared),
    [true, true, false, false, false, false],
  );
  assert.equal(table.entries[2]?.options, 'rw,noexec,rw,size=16k');
});

test('the topmost mount answers for a path, the newest goes first', () => {
  const secret = '/var/lib/kubelet/pods/u/volumes/kubernetes.io~secret/s';
  assert.equal(table.at(secret)?.id, 34);
  assert.equal(table.depthAt(secret), 2);
  assert.equal(table.at(`${secret}/x`), undefined);
  assert.deepEqual(
    table.beneath('/var/lib/kubelet/pods/u').map((e) => e.id),
    [34, 31],
  );
  assert.deepEqual(
    table.beneath('/var/lib/kubelet/pods/u2').map((e) => e.id),
    [],
  );
  assert.equal(table.holding('/var/lib/kubelet/pods')?.id, 30);
  assert.equal(table.holding('/var/lib/kubelet2')?.id, 22);
});

test('whatever may wait for a peer is foreign', () => {
  assert.equal(table.hasForeign, true);
  assert.equal(table.isLocal('/var/lib/kubelet/pods'), true);
  assert.equal(table.isLocal('/mnt'), false, 'a foreign mount beneath');
  assert.equal(table.isLocal('/mnt/é/deep'), false, 'inside a foreign mount');
  assert.equal(new MountTable(table.entries.slice(0, 3)).hasForeign, false);
});

test('only the last mount of a local filesystem may have to write something out', () => {
  const elsewhere = (...lines: readonly string[]): boolean => {
    const mounts = new MountTable(parseMountInfo(lines.join('\n')));
    const [first] = mounts.entries;
    assert.ok(first !== undefined);
    return mounts.isMountedElsewhere(first);
  };
  const disk = '40 22 8:1 /a/b /pods/u/volume-subpaths/v/c/0 rw - ext4 /dev/sda1 rw';
  assert.equal(elsewhere(disk, '22 1 8:1 / / rw - ext4 /dev/sda1 rw'), true);
  assert.equal(elsewhere(disk, '22 1 8:2 / / rw - ext4 /dev/sda2 rw'), false);
  assert.equal(elsewhere(disk), false);
  const nfs = '40 22 0:50 /a /pods/u/v rw - nfs4 server:/a rw';
  assert.equal(elsewhere(nfs, '41 22 0:50 / /mnt rw - nfs4 server:/ rw'), false, 'the server may be gone');
});

test('a root directory behind a link is found under its own name', () => {
  const seen = seenFrom(table, '/var/lib/kubelet', '/k');
  assert.equal(seen.at('/k/pods/u/volumes/kubernetes.io~secret/s')?.id, 34);
  assert.equal(seen.at('/')?.id, 22);
});
