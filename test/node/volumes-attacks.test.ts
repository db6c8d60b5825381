// What a hostile container or manifest may try through its volumes. Each test plays the attack; what lies outside the
// volume must be untouched and unseen.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Container, Pod, Volume } from '../../src/core/pod.ts';
import { HostMounter, type UnmountOptions } from '../../src/host/mounts/mounter.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { ManualClock } from '../../src/lib/manual-clock.ts';
import { AtomicWriter } from '../../src/volumes/atomic-writer.ts';
import { OpenDir } from '../../src/host/files/open-dir.ts';
import { removeTree } from '../../src/host/files/remove-tree.ts';
import { giveToGroup } from '../../src/volumes/ownership.ts';
import { Bench, podNamed } from './volumes-setup.ts';
import { until } from '../harness/until.ts';

const TRIES = 1_000;

/** Unmounts in process, so that a thousand tries take seconds. */
class QuickMounter extends HostMounter {
  override unmount(target: string, _options: UnmountOptions, signal: AbortSignal): Promise<void> {
    return super.unmount(target, { inMemory: true }, signal);
  }
}

let bench: Bench;
let outside: string;
const attackers: ChildProcess[] = [];
beforeEach(() => {
  bench = new Bench();
  outside = join(bench.root, 'outside');
  mkdirSync(join(outside, 'd'), { recursive: true });
  for (const file of ['marker', 'd/marker', 'a']) writeFileSync(join(outside, file), 'outside', { mode: 0o600 });
});
afterEach(async () => {
  for (const child of attackers.splice(0)) {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }
  assertOutsideIntact();
  assert.deepEqual(bench.dispose(), [], 'nothing is left mounted');
});

function assertOutsideIntact(): void {
  assert.deepEqual(readdirSync(outside).sort(), ['a', 'd', 'marker']);
  for (const file of ['marker', 'd/marker', 'a']) {
    const path = join(outside, file);
    assert.equal(readFileSync(path, 'utf8'), 'outside');
    const { uid, gid, mode } = statSync(path);
    assert.deepEqual([uid, gid, mode & 0o7777], [0, 0, 0o600], path);
  }
}

/** Starts exchanging names in the background and waits until it does. */
async function swapping(...paths: string[]): Promise<void> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'volumes-swapper.ts'), ...paths], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  attackers.push(child);
  await new Promise((resolve) => child.stdout.once('data', resolve));
}

const podWith = (volume: Volume): Pod =>
  podNamed('evil', {
    volumes: [volume],
    containers: [{ name: 'c', volumeMounts: [{ name: volume.name, mountPath: '/v' }] }],
  });
const only = (pod: Pod): Container => pod.spec.containers[0] ?? { name: 'c' };

async function mountedEmptyDir() {
  const volumes = bench.open({ mounter: new QuickMounter({ clock: systemClock }) });
  const pod = podWith({ name: 'e', emptyDir: {} });
  await volumes.manager.waitMounted(pod, bench.signal);
  const path = volumes.manager.mountsOf('uid-evil').get('e')?.hostPath ?? '';
  const bind = (subPath: string): Promise<string> =>
    volumes.manager.prepareSubPath(pod, only(pod), 0, subPath, bench.signal);
  const remove = async (): Promise<void> => {
    volumes.manager.podRemoved('uid-evil');
    await volumes.manager.waitUnmounted('uid-evil', bench.signal);
  };
  return { path, bind, remove, volumes };
}

test('a sub path through a planted link never leaves the volume', async () => {
  const { path, bind, remove } = await mountedEmptyDir();
  mkdirSync(join(path, 'dir'));
  const links: Record<string, string> = {
    root: '/',
    absolute: outside,
    up: '../../../../../outside',
    'dir/up': '../../../../../../outside',
    chain: 'absolute',
    self: 'self',
    magic: '/proc/self/root',
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(path, name));
  for (const subPath of ['root', 'root/etc', 'absolute', 'absolute/d', 'up', 'dir/up', 'chain', 'self', 'magic/etc']) {
    await assert.rejects(bind(subPath), { kind: 'invalid' }, subPath);
  }
  assert.deepEqual(readdirSync(path).sort(), ['absolute', 'chain', 'dir', 'magic', 'root', 'self', 'up']);
  symlinkSync('dir', join(path, 'fine'));
  writeFileSync(join(path, 'dir/marker'), 'inside');
  assert.equal(readFileSync(join(await bind('fine'), 'marker'), 'utf8'), 'inside', 'links within the volume work');
  await remove();
});

test(`a sub path is not led outside by a rename race in ${TRIES} tries`, async () => {
  const { path, bind, remove, volumes } = await mountedEmptyDir();
  const clean = (): Promise<void> =>
    new QuickMounter({ clock: systemClock }).unmount(
      join(volumes.layout.volumeSubPathsDir('uid-evil', 'e'), 'c', '0'),
      {},
      bench.signal,
    );
  mkdirSync(join(path, 'x/d'), { recursive: true });
  writeFileSync(join(path, 'x/marker'), 'inside');
  writeFileSync(join(path, 'x/d/marker'), 'inside');
  symlinkSync(outside, join(path, 'y'));
  await swapping(join(path, 'x'), join(path, 'y'));
  let bound = 0;
  for (let i = 0; i < TRIES; i++) {
    try {
      const at = await bind(i % 2 === 0 ? 'x/d' : 'x');
      bound++;
      assert.equal(readFileSync(join(at, 'marker'), 'utf8'), 'inside');
    } catch (err) {
      if (!(err instanceof Error) || err.name !== 'KubeletError') throw err;
    }
    await clean();
  }
  assert.ok(bound > TRIES / 20 && bound < TRIES, `the race was real: ${bound} of ${TRIES} were bound`);
  await remove();
});

test('directories for a sub path are not made outside by a rename race', async () => {
  const { path, bind, remove, volumes } = await mountedEmptyDir();
  mkdirSync(join(path, 'x'));
  symlinkSync(outside, join(path, 'y'));
  await swapping(join(path, 'x'), join(path, 'y'));
  const target = join(volumes.layout.volumeSubPathsDir('uid-evil', 'e'), 'c', '0');
  for (let i = 0; i < 200; i++) {
    await bind(`x/new-${i}/deep`).catch(() => undefined);
    await new QuickMounter({ clock: systemClock }).unmount(target, {}, bench.signal);
  }
  assertOutsideIntact();
  await remove();
});

const payloadOf = (text: string) =>
  new Map([
    ['a', { data: Buffer.from(text), mode: 0o644 }],
    ['d/marker', { data: Buffer.from(text), mode: 0o644 }],
  ]);

test('a written volume repairs what a container swapped, without following it', async () => {
  const root = join(bench.root, 'volume');
  const writer = new AtomicWriter(systemClock);
  const none = (): Promise<void> => Promise.resolve();
  const attacks: Record<string, () => void> = {
    '..data leads outside': () => replaceByLink(join(root, '..data'), outside),
    '..data leads up': () => replaceByLink(join(root, '..data'), '../outside'),
    '..data is a directory': () => {
      rmSync(join(root, '..data'));
      mkdirSync(join(root, '..data/sub'), { recursive: true });
    },
    'the files are a link outside': () => replaceByLink(join(root, readlinkSync(join(root, '..data'))), outside),
    'a directory of it is a link outside': () =>
      replaceByLink(join(root, readlinkSync(join(root, '..data')), 'd'), join(outside, 'd')),
    'a shown name leads outside': () => replaceByLink(join(root, 'd'), outside),
    'the temporary name is taken': () => mkdirSync(join(root, '..data_tmp/x'), { recursive: true }),
    'an old stamp leads outside': () => symlinkSync(outside, join(root, '..2020_01_01_00_00_00.1')),
  };
  for (const [name, attack] of Object.entries(attacks)) {
    rmSync(root, { recursive: true, force: true });
    mkdirSync(root);
    await writer.write(root, payloadOf('one'), none, {}, bench.signal);
    attack();
    await writer.write(root, payloadOf('two'), none, {}, bench.signal);
    assertOutsideIntact();
    assert.equal(readFileSync(join(root, 'a'), 'utf8'), 'two', name);
    assert.equal(readFileSync(join(root, 'd/marker'), 'utf8'), 'two', name);
    assert.equal(
      readdirSync(root).filter((n) => /^\.\.\d{4}(_\d\d){5}\.\d+$/.test(n)).length,
      1,
      `${name}: one directory of files`,
    );
  }
});

const replaceByLink = (path: string, target: string): void => {
  renameSync(path, `${path}.moved`);
  symlinkSync(target, path);
};

test('writes, ownership and deletion stay inside while names are being exchanged', async () => {
  const root = join(bench.root, 'volume');
  mkdirSync(join(root, 'deep/d'), { recursive: true });
  for (const file of ['deep/marker', 'deep/d/marker']) writeFileSync(join(root, file), 'inside');
  symlinkSync(outside, join(root, 'link'));
  const writer = new AtomicWriter(systemClock);
  await writer.write(root, payloadOf('0'), () => Promise.resolve(), {}, bench.signal);
  symlinkSync(outside, join(root, '..other'));
  await swapping(join(root, 'deep'), join(root, 'link'), join(root, '..data'), join(root, '..other'));
  for (let i = 1; i <= 150; i++) {
    const own = (): Promise<void> =>
      giveToGroup(root, { gid: 2000, readOnly: true, changePolicy: 'Always' }, bench.signal);
    await writer.write(root, payloadOf(String(i)), own, {}, bench.signal).catch(() => undefined);
  }
  assertOutsideIntact();
  for (let i = 0; i < 50 && existsSync(root); i++) {
    await OpenDir.using(bench.root, (dir) => removeTree(dir, 'volume', bench.signal)).catch(() => undefined);
  }
  assertOutsideIntact();
  assert.equal(existsSync(root), false);
});

test('ownership does not follow links out of the volume', async () => {
  const { path, remove } = await mountedEmptyDir();
  symlinkSync(join(outside, 'marker'), join(path, 'file'));
  symlinkSync(outside, join(path, 'dir'));
  mkdirSync(join(path, 'sub'));
  writeFileSync(join(path, 'sub/f'), '', { mode: 0o600 });
  chownSync(join(path, 'sub/f'), 1234, 5);
  await giveToGroup(path, { gid: 2000, readOnly: false, changePolicy: 'Always' }, bench.signal);
  const { uid, gid, mode } = statSync(join(path, 'sub/f'));
  assert.deepEqual([uid, gid, mode & 0o7777], [1234, 2000, 0o660]);
  assert.equal(statSync(join(path, 'sub')).mode & 0o7777, 0o2775);
  await remove();
});

test('names that are paths are refused before anything is made', async () => {
  const clock = new ManualClock();
  const { manager } = bench.open({ clock }, { waitTimeoutMs: 50 });
  /** Waits, with a clock that stands still, until the pod is told what is wrong, and lets its time run out. */
  const refuses = async (pod: Pod, why: RegExp): Promise<void> => {
    const told = bench.events.length;
    let isOver = false;
    const refused = assert.rejects(manager.waitMounted(pod, bench.signal), why).finally(() => (isOver = true));
    await until('it is told', () => isOver || bench.events.length > told);
    await clock.advance(50);
    await refused;
    manager.podRemoved(pod.metadata.uid ?? '');
    manager.reopen(pod.metadata.uid ?? '');
  };
  const rows: Pod[] = [
    podNamed('x', podWith({ name: '../../outside', emptyDir: {} }).spec),
    podNamed('x', podWith({ name: '..', configMap: { name: 'c', optional: true } }).spec),
    podNamed('x', podWith({ name: 'e', emptyDir: {} }).spec, '../outside'),
    podNamed('x', podWith({ name: 'e', emptyDir: {} }).spec, '..'),
  ];
  for (const pod of rows) await refuses(pod, /cannot be the name of a directory/);
  bench.configMaps.set('golden/c', { metadata: { name: 'c' }, data: { k: 'v' } });
  for (const path of ['../a', '/a', 'x/../../a', '..a', '..data']) {
    const pod = podWith({ name: 'e', configMap: { name: 'c', items: [{ key: 'k', path }] } });
    await refuses(pod, /invalid path: must/);
    await manager.waitUnmounted('uid-evil', bench.signal);
  }
});

test('a tree thousands of levels deep is removed', async () => {
  const { path, remove } = await mountedEmptyDir();
  let dir = await OpenDir.open(path);
  for (let i = 0; i < 3_000; i++) {
    const next = await dir.mkdir('d', 0o700);
    await dir.close();
    dir = next;
  }
  await dir.close();
  await remove();
  assert.equal(existsSync(path), false);
});
