// The mount operations themselves on this kernel, and the manager where the root directory is behind a link.
// runs: gate
import assert from 'node:assert/strict';
import { constants, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { HostMounter } from '../../src/host/mounts/mounter.ts';
import { readMountTable } from '../../src/host/mounts/mount-table.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { Registry } from '../../src/lib/metrics.ts';
import { createVolumes } from '../../src/volumes/create.ts';
import { VolumeMetrics } from '../../src/volumes/metrics.ts';
import { Bench, mountsBeneath, podNamed } from './volumes-setup.ts';

let bench: Bench;
const mounter = new HostMounter({ clock: systemClock });
beforeEach(() => void (bench = new Bench()));
afterEach(() => assert.deepEqual(bench.dispose(), [], 'nothing is left mounted'));

test('a tmpfs has its size, is kept out of swap where the kernel can, and goes however it is stacked', async () => {
  const target = join(bench.root, 'm');
  mkdirSync(target);
  await mounter.tmpfs(target, { sizeBytes: 1 << 20 }, bench.signal);
  await mounter.tmpfs(target, {}, bench.signal);
  const table = await readMountTable();
  assert.equal(table.depthAt(target), 2);
  assert.ok(
    table.entries
      .find((e) => e.target === target)
      ?.options.split(',')
      .includes('size=1024k'),
  );
  await mounter.unmount(target, {}, bench.signal);
  assert.equal((await readMountTable()).at(target), undefined);
  await mounter.unmount(target, {}, bench.signal);
  await mounter.unmount(join(bench.root, 'never'), {}, bench.signal);
});

test('one of several mounts of a local filesystem goes without a child', async () => {
  const [volume, target] = [join(bench.root, 'volume'), join(bench.root, 'bound')];
  for (const path of [volume, target]) mkdirSync(path);
  await mounter.tmpfs(volume, {}, bench.signal);
  writeFileSync(join(volume, 'file'), 'kept');
  const source = await open(volume, constants.O_RDONLY);
  await mounter.bindDescriptor(source.fd, target, bench.signal);
  // Busy: whoever stands in it is named, as by a child.
  const inside = await open(join(target, 'file'));
  await source.close();
  const impatient = new HostMounter({ clock: systemClock }, { childTimeoutMs: 0 });
  await assert.rejects(impatient.unmount(target, {}, bench.signal), { kind: 'conflict', message: /held by pid \d+/ });
  await inside.close();
  await impatient.unmount(target, {}, bench.signal);
  assert.equal((await readMountTable()).at(target), undefined);
  assert.equal(readFileSync(join(volume, 'file'), 'utf8'), 'kept');
  await mounter.unmount(volume, {}, bench.signal);
});

test('errors name the place and have a kind', async () => {
  await assert.rejects(mounter.tmpfs(join(bench.root, 'nowhere'), {}, bench.signal), {
    kind: 'notFound',
    message: `mount: ENOENT at ${join(bench.root, 'nowhere')}`,
  });
});

test('an unmount does not follow a link at its target', async () => {
  const target = join(bench.root, 'm');
  mkdirSync(target);
  await mounter.tmpfs(target, {}, bench.signal);
  symlinkSync(target, join(bench.root, 'link'));
  await mounter.unmount(join(bench.root, 'link'), { inMemory: true }, bench.signal);
  assert.ok((await readMountTable()).at(target) !== undefined);
  await mounter.unmount(target, { inMemory: true }, bench.signal);
});

const noHugePages = existsSync('/sys/kernel/mm/hugepages/hugepages-2048kB') ? false : 'no 2 MiB huge pages';
test('huge pages of the size asked for', { skip: noHugePages }, async () => {
  const volumes = bench.open();
  const pod = podNamed('huge', {
    volumes: [{ name: 'h', emptyDir: { medium: 'HugePages' } }],
    containers: [
      {
        name: 'c',
        resources: { limits: { 'hugepages-2Mi': '4Mi' } },
        volumeMounts: [{ name: 'h', mountPath: '/h' }],
      },
    ],
  });
  await volumes.manager.waitMounted(pod, bench.signal);
  const entry = (await readMountTable()).at(volumes.manager.mountsOf('uid-huge').get('h')?.hostPath ?? '');
  assert.equal(entry?.fsType, 'hugetlbfs');
  assert.ok(entry.options.split(',').includes('pagesize=2M'));
  volumes.manager.podRemoved('uid-huge');
  await volumes.manager.waitUnmounted('uid-huge', bench.signal);
});

test('a root directory behind a link: mounted once, adopted, unmounted; metrics count along', async () => {
  mkdirSync(join(bench.root, 'real'));
  symlinkSync('real', join(bench.root, 'link'));
  const registry = new Registry();
  const open = () =>
    createVolumes(
      { ...bench.deps(), metrics: new VolumeMetrics(new Registry()) },
      { rootDir: join(bench.root, 'link') },
    );
  const pod = podNamed('p', {
    volumes: [{ name: 'm', emptyDir: { medium: 'Memory' } }],
    containers: [{ name: 'c', volumeMounts: [{ name: 'm', mountPath: '/m' }] }],
  });
  const first = open();
  await first.manager.waitMounted(pod, bench.signal);
  const path = first.manager.mountsOf('uid-p').get('m')?.hostPath ?? '';
  assert.ok(path.startsWith(join(bench.root, 'link/')));
  writeFileSync(join(path, 'data'), 'x');
  const second = createVolumes(
    { ...bench.deps(), metrics: new VolumeMetrics(registry) },
    { rootDir: join(bench.root, 'link') },
  );
  const stop = new AbortController();
  const running = second.manager.run(stop.signal);
  await second.manager.reconstruct(bench.signal);
  await second.manager.waitMounted(pod, bench.signal);
  assert.equal(mountsBeneath(bench.root).length, 1);
  assert.equal(readFileSync(join(path, 'data'), 'utf8'), 'x');
  const text = registry.render();
  assert.match(
    text,
    /volume_manager_total_volumes{plugin_name="kubernetes.io\/empty-dir",state="actual_state_of_world"} 1/,
  );
  assert.match(text, /reconstruct_volume_operations_total 1/);
  assert.match(
    text,
    /storage_operation_duration_seconds_count{migrated="false",operation_name="volume_mount",status="success",volume_plugin="kubernetes.io\/empty-dir"} 1/,
  );
  second.manager.podRemoved('uid-p');
  await second.manager.waitUnmounted('uid-p', bench.signal);
  stop.abort();
  await running;
});
