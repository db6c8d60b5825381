// The test of project quotas in a QEMU guest: many kernels are built without the quota format of ext4, the distribution's cloud
// kernel has it. Software emulation is enough.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';
import { bootGuest, noQemu } from '../harness/guest.ts';
import { Archive, cloudKernel } from './cgroup-v2-guest-image.ts';

const TESTS = import.meta.dirname;
const SOURCES = join(TESTS, '..', '..', 'src', 'host', 'quota');
const GIVE_UP_MS = 600_000;
/** One thread for all CPUs: with several, compiled JavaScript now and then crashes under emulation. */
const MACHINE = '-accel tcg,thread=single -cpu max -m 1024 -no-reboot';
const MODULES = ['quota_tree.ko', 'quota_v2.ko'];
const INIT = `#!/bin/sh
export PATH=/usr/bin HOME=/tmp PROJECT_QUOTA_DEVICE=/dev/nvme0n1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir /dev/shm
mount -t tmpfs tmpfs /dev/shm
${MODULES.map((name) => `insmod /${name}`).join('\n')}
cd /project
node --disable-warning=ExperimentalWarning --test --test-isolation=none --test-force-exit --test-reporter=tap test.mjs
echo "guest: tests ended with $?"
echo o > /proc/sysrq-trigger
sleep 10
`;

/** As one file each: an emulated machine takes a minute to read the sources. */
async function bundle(folder: string): Promise<string> {
  const out = join(folder, 'bundle');
  await build({
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    logLevel: 'warning',
    define: { KUBELET_TS_FORM: '"files"' },
    entryPoints: { test: join(TESTS, 'project-quota.test.ts'), 'quota-child': join(SOURCES, 'quota-child.ts') },
    outdir: out,
    outExtension: { '.js': '.mjs' },
  });
  return out;
}

async function buildImage(kernel: string, folder: string): Promise<string> {
  const path = join(folder, 'quota.cpio');
  const archive = new Archive(path);
  archive.copy('/bin/busybox', '/usr/bin/busybox');
  for (const name of ['sh', 'sleep', 'echo', 'mkdir', 'insmod']) archive.link(`usr/bin/${name}`, 'busybox');
  archive.program(process.execPath, '/usr/bin/node');
  for (const name of ['mount', 'umount']) archive.program(`/usr/bin/${name}`);
  for (const dir of ['proc', 'sys', 'dev', 'tmp', 'run']) archive.directory(dir);
  const bundled = await bundle(folder);
  for (const file of ['test.mjs', 'quota-child.mjs']) archive.copy(join(bundled, file), `/project/${file}`);
  for (const name of MODULES) {
    const [module] = globSync(join(dirname(dirname(kernel)), `{usr/,}lib/modules/*/kernel/fs/quota/${name}`));
    assert.ok(module !== undefined, `no ${name} beside ${kernel}`);
    archive.copy(module, `/${name}`);
  }
  archive.file('init', INIT);
  archive.close();
  return path;
}

function boot(kernel: string, image: string, disk: string): Promise<string> {
  const drive = ['-drive', `file=${disk},if=none,id=d,format=raw,cache=unsafe`, '-device', 'nvme,drive=d,serial=d'];
  const start = ['-kernel', kernel, '-initrd', image, '-append', 'console=ttyS0 panic=-1 loglevel=3'];
  return bootGuest([...MACHINE.split(' '), ...drive, ...start], GIVE_UP_MS);
}

const skip = noQemu();

test('project quotas measure emptyDir volumes on a guest', { skip, timeout: GIVE_UP_MS + 60_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kubelet-ts-quota-'));
  try {
    const kernel = cloudKernel();
    const disk = join(folder, 'disk.img');
    const features = ['-q', '-O', 'quota,project', '-E', 'quotatype=prjquota'];
    execFileSync('mkfs.ext4', [...features, disk, '16M'], { stdio: 'pipe' });
    const start = performance.now();
    const output = await boot(kernel, await buildImage(kernel, folder), disk);
    t.diagnostic(`guest ran ${((performance.now() - start) / 1000).toFixed(1)} s`);
    assert.match(output, /^guest: tests ended with 0\r?$/m, output.slice(-8000));
    assert.equal(/^# pass (\d+)/m.exec(output)?.[1], '6', output.slice(-8000));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
