// What emptyDir volumes hold, by the project quotas of a real ext4 filesystem: as a walk counts it, over a restart, and
// without a trace afterwards. Where this kernel has no quota format for ext4, a guest runs it (`project-quota-guest.test.ts`).
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import { MountTable } from '../../src/host/mounts/mount-table.ts';
import { projectsIn } from '../../src/host/quota/project-files.ts';
import { ProjectQuotas } from '../../src/host/quota/project-quotas.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { DirectorySizes } from '../../src/volumes/directory-sizes.ts';
import type { PodUsage } from '../../src/volumes/manager.ts';
import { Bench, podNamed } from './volumes-setup.ts';

const { signal } = new AbortController();
const FIRST = 1_048_577;
const MIB = 2 ** 20;
const folder = mkdtempSync(join(tmpdir(), 'kubelet-quota-'));
const root = join(folder, 'root');

/** Mounts it with project quotas; says why it cannot be. */
function mountDisk(): string | false {
  mkdirSync(root);
  const given = process.env['PROJECT_QUOTA_DEVICE'];
  const disk = given ?? join(folder, 'disk.img');
  if (given === undefined)
    execFileSync('mkfs.ext4', ['-q', '-O', 'quota,project', '-E', 'quotatype=prjquota', disk, '16M'], {
      stdio: 'pipe',
    });
  const options = given === undefined ? 'loop,prjquota' : 'prjquota';
  const mounted = spawnSync('mount', ['-t', 'ext4', '-o', options, disk, root], { encoding: 'utf8' });
  if (mounted.status === 0) return false;
  assert.equal(given, undefined, mounted.stderr);
  rmSync(folder, { recursive: true });
  return 'this kernel has no quota format for ext4 (CONFIG_QFMT_V2)';
}

const skip = mountDisk();
if (skip === false)
  after(() => {
    execFileSync('umount', [root]);
    rmSync(folder, { recursive: true });
  });

const files = { projects: join(folder, 'projects'), projid: join(folder, 'projid') };
const projects = (): Map<string, number> => projectsIn(readFileSync(files.projects, 'utf8'));

describe('project quotas of a directory', { skip, timeout: 300_000 }, () => {
  let quotas: ProjectQuotas;
  const sizes = new DirectorySizes({ clock: systemClock, log: silentLogger });
  before(() => {
    quotas = new ProjectQuotas({ clock: systemClock, log: silentLogger }, { files, deadlineMs: 120_000 });
  });
  after(() => quotas.close());

  const agrees = async (path: string): Promise<{ bytes: number; inodes: number }> => {
    const usage = await quotas.usageOf(path, signal);
    const counted = await sizes.of(path, new MountTable([]), signal);
    assert.deepEqual(usage, counted);
    return counted;
  };

  it('count what a walk counts, also what was there before', async () => {
    const [a, b] = [join(root, 'a'), join(root, 'b')];
    mkdirSync(join(a, 'deep', 'er'), { recursive: true });
    mkdirSync(b);
    writeFileSync(join(a, 'deep', 'er', 'old'), Buffer.alloc(MIB, 1));
    symlinkSync('/etc', join(a, 'link'));
    for (const path of [a, b]) assert.ok(await quotas.assign(path, signal));
    assert.deepEqual([projects().get(a), projects().get(b)], [FIRST, FIRST + 1]);
    rmSync(join(a, 'link'));
    assert.deepEqual((await agrees(a)).inodes, 4);
    assert.deepEqual((await agrees(b)).inodes, 1);
    writeFileSync(join(a, 'deep', 'new'), Buffer.alloc(3 * MIB, 2));
    linkSync(join(a, 'deep', 'new'), join(a, 'again'));
    writeFileSync(join(b, 'file'), Buffer.alloc(MIB / 2, 3));
    assert.ok((await agrees(a)).bytes >= 4 * MIB);
    assert.ok((await agrees(b)).bytes < MIB);
    rmSync(join(a, 'deep'), { recursive: true });
    assert.equal((await agrees(a)).inodes, 2, 'the linked file is still there');
  });

  it('are the same when asked for again, and for the next process', async () => {
    const a = join(root, 'a');
    assert.ok(await quotas.assign(a, signal));
    quotas.close();
    assert.ok(await quotas.assign(a, signal));
    assert.equal(projects().get(a), FIRST);
    await agrees(a);
  });

  it('keep an id from others while anything uses it', async () => {
    const [a, b, c] = [join(root, 'a'), join(root, 'b'), join(root, 'c')];
    await quotas.clear(a, signal);
    assert.equal(await quotas.usageOf(a, signal), undefined);
    mkdirSync(c);
    assert.ok(await quotas.assign(c, signal));
    assert.equal(projects().get(c), FIRST + 2, 'files in a still have its id');
    for (const path of [b, c]) await quotas.clear(path, signal);
    for (const path of [a, b, c]) rmSync(path, { recursive: true });
    assert.deepEqual([readFileSync(files.projects, 'utf8'), readFileSync(files.projid, 'utf8')], ['', '']);
  });

  it('are not to be had in memory', async () => {
    const other = mkdtempSync('/dev/shm/kubelet-quota-');
    try {
      assert.equal(await quotas.assign(other, signal), false);
      assert.equal(readFileSync(files.projects, 'utf8'), '');
    } finally {
      rmSync(other, { recursive: true });
    }
  });
});

describe('emptyDir volumes', { skip, timeout: 300_000 }, () => {
  let bench: Bench;
  before(() => void (bench = new Bench()));
  after(() => void bench.dispose());
  const open = () =>
    bench.open(
      { quotas: new ProjectQuotas({ clock: systemClock, log: silentLogger }, { files, deadlineMs: 120_000 }) },
      { rootDir: root },
    ).manager;
  const volumes = [
    { name: 'disk', emptyDir: {} },
    { name: 'memory', emptyDir: { medium: 'Memory' } },
  ];
  const containers = [{ name: 'c', volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })) }];
  const confined = podNamed('confined', { hostUsers: false, volumes, containers });
  const plain = podNamed('plain', { volumes, containers });
  const diskOf = (pod: Pod): string =>
    join(root, 'pods', pod.metadata.uid ?? '', 'volumes/kubernetes.io~empty-dir/disk');

  const measured = async (manager: ReturnType<typeof open>): Promise<Map<string, PodUsage['volumes']>> => {
    const found = new Map<string, PodUsage['volumes']>();
    for await (const { uid, volumes: usages } of manager.statsOf(['uid-confined', 'uid-plain'], signal))
      found.set(uid, usages);
    return found;
  };

  it('are measured by quota in a pod with a user namespace only', async () => {
    const manager = open();
    for (const pod of [confined, plain]) await manager.waitMounted(pod, signal);
    for (const pod of [confined, plain]) writeFileSync(join(diskOf(pod), 'file'), Buffer.alloc(MIB, 1));
    assert.deepEqual([...projects()], [[diskOf(confined), FIRST]]);
    const found = await measured(manager);
    const sourceOf = (uid: string, name: string): string | undefined => found.get(uid)?.get(name)?.source;
    assert.deepEqual(
      ['uid-confined', 'uid-plain'].map((uid) => ['disk', 'memory'].map((name) => sourceOf(uid, name))),
      [
        ['fsquota', 'du'],
        ['du', 'du'],
      ],
    );
    const [byQuota, byWalk] = ['uid-confined', 'uid-plain'].map((uid) => found.get(uid)?.get('disk'));
    assert.equal(byQuota?.usedBytes, byWalk?.usedBytes);
    assert.equal(byQuota?.inodesUsed, byWalk?.inodesUsed);
    assert.equal(byQuota?.capacityBytes, byWalk?.capacityBytes);
    await manager.run(AbortSignal.abort());
  });

  it('are measured so by the next run, and leave no trace', async () => {
    const manager = open();
    await manager.reconstruct(signal);
    await manager.waitMounted(confined, signal);
    assert.deepEqual([...projects()], [[diskOf(confined), FIRST]]);
    assert.equal((await measured(manager)).get('uid-confined')?.get('disk')?.source, 'fsquota');
    for (const pod of [confined, plain]) {
      if (pod === plain) await manager.waitMounted(pod, signal);
      manager.podRemoved(pod.metadata.uid ?? '');
      await manager.waitUnmounted(pod.metadata.uid ?? '', signal);
      assert.ok(!existsSync(diskOf(pod)));
    }
    assert.deepEqual([readFileSync(files.projects, 'utf8'), readFileSync(files.projid, 'utf8')], ['', '']);
    await manager.run(AbortSignal.abort());
  });
});
