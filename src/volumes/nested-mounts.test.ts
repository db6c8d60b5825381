// Volumes mounted inside a volume that the kubelet writes.
import assert from 'node:assert/strict';
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Container, Pod, VolumeMount } from '../core/pod.ts';
import type { Mounter } from '../host/mounts/mounter.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { AtomicWriter } from './atomic-writer.ts';
import { FileBudgets } from './file-budget.ts';
import { VolumeLayout } from './layout.ts';
import { nestedMountPoints } from './nested-mounts.ts';
import { EmptyDirBacking } from './plugins/empty-dir-backing.ts';
import { WrittenVolumePlugin } from './plugins/written-volume.ts';

const mountsOf = (...mounts: readonly (readonly [name: string, mountPath: string])[]): VolumeMount[] =>
  mounts.map(([name, mountPath]) => ({ name, mountPath }));
const podOf = (...containers: VolumeMount[][]): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u' },
  spec: { containers: containers.map((volumeMounts, i): Container => ({ name: `c${i}`, volumeMounts })) },
});

test('mount points beneath a volume', () => {
  const rows: [string, Pod, string[]][] = [
    ['none', podOf(mountsOf(['v', '/a'], ['w', '/b'])), []],
    ['a neighbour whose name begins alike', podOf(mountsOf(['v', '/a'], ['w', '/ab'])), []],
    ['one', podOf(mountsOf(['v', '/a/'], ['w', '/a/b/c'])), ['b/c']],
    [
      'only the nearest, whatever stands between in the order of names',
      podOf(mountsOf(['v', '/a'], ['w', '/a/n'], ['w', '/a/n-v'], ['w', '/a/n/deep'], ['w', '/a/n2'])),
      ['n', 'n-v', 'n2'],
    ],
    [
      'of every container, each once',
      podOf(mountsOf(['v', '/a'], ['w', '/a/x']), mountsOf(['v', '/b'], ['w', '/b/x'])),
      ['x'],
    ],
    ['of itself', podOf(mountsOf(['v', '/a'], ['v', '/a/again'])), ['again']],
  ];
  for (const [what, pod, want] of rows) assert.deepEqual(nestedMountPoints(pod, 'v'), want, what);
  assert.throws(() => nestedMountPoints(podOf(mountsOf(['v', '../a'])), 'v'), {
    message: 'invalid container mount point ../a',
  });
});

/** Sets up a volume of such files for a pod and says where it is. */
async function volumeFor(t: TestContext, pod: Pod, keys: () => readonly string[]): Promise<() => Promise<string>> {
  const root = await mkdtemp(join(tmpdir(), 'kts-nested-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const layout = new VolumeLayout(root);
  for (const dir of ['volumes', 'plugins']) await mkdir(join(layout.podDir('u'), dir), { recursive: true });
  const plugin = new WrittenVolumePlugin(
    {
      name: 'kubernetes.io/configmap',
      medium: 'disk',
      collect: async () => ({ files: new Map(keys().map((key) => [key, { data: Buffer.from('x'), mode: 0o644 }])) }),
      references: () => [],
    },
    {
      backing: new EmptyDirBacking(layout, {} as Mounter),
      writer: new AtomicWriter(new ManualClock()),
      budgets: new FileBudgets(),
      owner: { give: () => Promise.resolve() },
      allocatableMemory: () => 0,
    },
  );
  return async () => {
    const request = {
      pod,
      volume: { name: 'v', configMap: { name: 'c' } },
      specName: 'v',
      volumeMode: 'Filesystem' as const,
      readOnly: false,
      inUse: false,
      attachedPath: '',
      progress: () => undefined,
    };
    return (await plugin.setUp(request, new AbortController().signal)).hostPath;
  };
}

test('are made in the volume before it is shown, and left alone by later writes', async (t) => {
  let key = 'first';
  const file = { name: 'w', mountPath: '/etc/app/first', subPath: 'file' };
  const pod = podOf([...mountsOf(['v', '/etc/app'], ['w', '/etc/app/conf.d/extra']), file]);
  const setUp = await volumeFor(t, pod, () => [key]);
  const path = await setUp();
  assert.equal((await stat(join(path, 'conf.d/extra'))).mode & 0o7777, 0o755);
  // A file of the volume's own is there to mount on.
  assert.equal(await readlink(join(path, 'first')), '..data/first');
  key = 'second';
  await setUp();
  const shown = async (): Promise<string[]> => (await readdir(path)).filter((name) => !name.startsWith('..')).sort();
  assert.deepEqual(await shown(), ['conf.d', 'second']);
  await setUp();
  assert.deepEqual(await shown(), ['conf.d', 'first', 'second']);
  assert.equal(await readFile(join(path, 'second'), 'utf8'), 'x');
});

test('a mount path is as long as the kernel takes, and no longer', async (t) => {
  const setUp = await volumeFor(t, podOf(mountsOf(['v', '/v'], ['w', `/v${'/a'.repeat(2_000)}`])), () => ['key']);
  assert.ok((await stat(join(await setUp(), '/a'.repeat(1_900)))).isDirectory());
  const tooLong = podOf(mountsOf(['v', '/v'], ['w', `/v${'/a'.repeat(2_100)}`]));
  assert.throws(() => nestedMountPoints(tooLong, 'v'), { kind: 'invalid', message: /longer than 4095 bytes/ });
});

const hides: readonly [what: string, mountPath: string, keys: readonly string[]][] = [
  ['beside its own', '/etc/app/rules/extra', ['rules/own', 'other']],
  ['in place of a directory', '/etc/app/rules', ['rules/own', 'other']],
  ['in place of a file', '/etc/app/rules', ['rules', 'other']],
  ['beneath a file', '/etc/app/rules/extra', ['rules', 'other']],
];
for (const [what, mountPath, keys] of hides)
  test(`a directory mounted ${what} has one of its own, whatever becomes of the files`, async (t) => {
    let shown = keys;
    const setUp = await volumeFor(t, podOf(mountsOf(['v', '/etc/app'], ['w', mountPath])), () => shown);
    const path = await setUp();
    const point = join(path, mountPath.slice('/etc/app/'.length));
    const { ino } = await lstat(point);
    assert.equal(await readlink(join(path, 'other')), '..data/other');
    shown = [...keys, 'more'];
    await setUp();
    assert.deepEqual([(await lstat(point)).ino, await readdir(point)], [ino, []]);
    assert.equal(await readFile(join(path, '..data', keys[0] ?? ''), 'utf8'), 'x');
  });
