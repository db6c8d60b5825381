// Disks that take long to be written: real ext4 on loop devices over a file system that is frozen for a while. Nothing takes a
// disk away, nor says that it is unmounted, while the kernel or a command still writes to it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { HostMounter } from '../../src/host/mounts/mounter.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { VolumePlugin } from '../../src/volumes/plugin.ts';
import { timePasses, until } from '../harness/until.ts';
import { IQN, openPlugin, requestFor, ScriptedHost } from './volumes-scripted-host.ts';
import { Bench, mountsBeneath, podNamed } from './volumes-setup.ts';

const noLoops = existsSync('/dev/loop-control') ? false : 'this machine has no loop devices';
const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' }).trim();

/** A file system of its own under the disks of a test: while it is frozen, whatever is written to them waits. */
class SlowStore {
  readonly dir: string;
  readonly #device: string;
  #frozen = false;

  constructor(root: string) {
    this.dir = join(root, 'store');
    mkdirSync(this.dir);
    const file = join(root, 'store-file');
    writeFileSync(file, '');
    truncateSync(file, 256 << 20);
    this.#device = run('losetup', '-f', '--show', file);
    run('mkfs.ext4', '-q', this.#device);
    run('mount', this.#device, this.dir);
  }

  freeze(): void {
    run('fsfreeze', '-f', this.dir);
    this.#frozen = true;
  }

  thaw(): void {
    if (this.#frozen) run('fsfreeze', '-u', this.dir);
    this.#frozen = false;
  }

  dispose(): void {
    run('umount', this.dir);
    run('losetup', '-d', this.#device);
  }
}

const isHeld = (device: string): boolean => {
  try {
    closeSync(openSync(device, constants.O_RDONLY | constants.O_EXCL));
    return false;
  } catch {
    return true;
  }
};

const POD = podNamed('p', {});
const ON_DISK = { uid: 'uid-p', specName: 'data', volumeMode: 'Filesystem' } as const;
const WHY = 'nothing to happen';

let bench: Bench;
let host: ScriptedHost;
let store: SlowStore;

describe('a slow disk', { skip: noLoops }, () => {
  beforeEach(() => {
    bench = new Bench();
    host = new ScriptedHost(bench.root);
    store = new SlowStore(bench.root);
  });
  afterEach(async () => {
    store.thaw();
    const left = mountsBeneath(bench.root).filter((target) => target !== store.dir);
    for (const target of left) run('umount', target);
    // An unmount or a check that a failed test left behind.
    await until('nobody uses the disks', () => busyCommands() === '');
    host.dispose();
    store.dispose();
    bench.dispose();
    assert.deepEqual(left, [], 'nothing is left mounted');
  });

  const busyCommands = (): string => {
    const text = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
    return (
      text.split('\n').find((line) => /^(umount|mount|fsck|mkfs|e2fsck)/.test(line) && line.includes(bench.root)) ?? ''
    );
  };

  /** A mounted disk with more to write out than its journal. */
  const fill = (dir: string): void => writeFileSync(join(dir, 'file'), Buffer.alloc(8 << 20, 'x'));

  it('an unmount ends with the file system, whatever its caller was ready to wait, also for a restarted agent', async () => {
    const target = join(bench.root, 'mounted');
    mkdirSync(target);
    const device = join(host.dev, host.disk(store.dir));
    run('mkfs.ext4', '-q', device);
    run('mount', device, target);
    fill(target);
    store.freeze();
    const mounter = new HostMounter({ clock: systemClock }, { childTimeoutMs: 1 });
    const killed = new AbortController();
    const first = mounter.unmount(target, { detachIfDead: true }, killed.signal);
    await until('it left the mount table', () => !mountsBeneath(bench.root).includes(target));
    const ended: string[] = [];
    const note = (who: string) => () => void ended.push(`${who}${isHeld(device) ? ' while it is held' : ''}`);
    const second = mounter.unmount(target, {}, bench.signal).then(note('the next attempt'));
    const restarted = new HostMounter({ clock: systemClock }, { childTimeoutMs: 1 });
    const third = restarted.unmount(target, { ofDisk: true }, bench.signal).then(note('a restarted agent'));
    killed.abort(new Error('killed'));
    await assert.rejects(first, /killed/);
    await timePasses(300, WHY);
    assert.deepEqual(ended, []);
    store.thaw();
    await Promise.all([second, third]);
    assert.deepEqual(new Set(ended), new Set(['a restarted agent', 'the next attempt']));
  });

  const open = (kind: 'iscsi' | 'local'): VolumePlugin => openPlugin(bench, host, kind);
  const sourceOf = (kind: 'iscsi' | 'local', name: string): Record<string, unknown> => {
    if (kind === 'local') return { local: { path: join(host.dev, name) } };
    host.appears.push({ by: 'by-path', name: `ip-192.0.2.7:3260-iscsi-${IQN}-lun-1`, disk: name });
    return { iscsi: { targetPortal: '192.0.2.7', iqn: IQN, lun: 1 } };
  };
  const detached = (): string[] => host.ran.filter((line) => /delete|logout/.test(line));

  for (const kind of ['iscsi', 'local'] as const)
    it(`${kind}: an agent killed amid the unmount: the next one finds the volume and ends with the file system`, async () => {
      const name = host.disk(store.dir);
      const mounted = await open(kind).setUp(requestFor(bench, POD, sourceOf(kind, name)), bench.signal);
      fill(mounted.hostPath);
      store.freeze();
      const killed = new AbortController();
      const first = open(kind).tearDown(ON_DISK, killed.signal);
      await until('it left the mount table', () => mountsBeneath(bench.root).join() === store.dir);
      killed.abort(new Error('killed'));
      await assert.rejects(first, /killed/);
      let ended = '';
      const second = open(kind)
        .tearDown(ON_DISK, bench.signal)
        .then(() => (ended = isHeld(join(host.dev, name)) ? 'while it is held' : 'when it was free'));
      await timePasses(300, WHY);
      assert.deepEqual([ended, detached()], ['', []]);
      const known = await open(kind).reconstruct?.(ON_DISK);
      const unique = kind === 'local' ? 'kubernetes.io/local-volume/data' : `kubernetes.io/iscsi/192.0.2.7:${IQN}:1`;
      assert.deepEqual(known, { uniqueName: unique, ...(kind === 'local' ? {} : { attachedName: unique }) });
      const place =
        kind === 'local' ? 'volumes/kubernetes.io~local-volume/data' : 'plugins/kubernetes.io~iscsi/data.json';
      assert.ok(existsSync(join(bench.root, 'pods/uid-p', place)), 'a restarted agent finds it');
      store.thaw();
      await second;
      assert.equal(ended, 'when it was free');
    });

  it('iSCSI: a disk that another mount namespace still has is not detached', async (t) => {
    const name = host.disk();
    const plugin = open('iscsi');
    const { hostPath } = await plugin.setUp(requestFor(bench, POD, sourceOf('iscsi', name)), bench.signal);
    const inside = ['-m', '--propagation', 'private', 'sh', '-c', `cd '${hostPath}'; echo here; read x`];
    const other = spawn('unshare', inside, { stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(() => other.kill());
    await new Promise((resolve) => other.stdout.once('data', resolve));
    await assert.rejects(plugin.tearDown(ON_DISK, bench.signal), {
      kind: 'conflict',
      message: `${join(host.dev, name)} is not removed: a file system on it is not written out yet, or a program holds it`,
    });
    assert.deepEqual(detached(), []);
    const gone = new Promise((resolve) => other.once('close', resolve));
    other.stdin.end('\n');
    await gone;
    await until('the other namespace is gone', () => !isHeld(join(host.dev, name)));
    await plugin.tearDown(ON_DISK, bench.signal);
    assert.equal(detached().length, 3);
  });

  it('iSCSI: a check that goes on when its pod is deleted keeps the disk attached and unmounted', async () => {
    const name = host.disk(store.dir);
    const device = join(host.dev, name);
    run('mkfs.ext4', '-q', device);
    needRecovery(device);
    store.freeze();
    const plugin = open('iscsi');
    const deleted = new AbortController();
    const first = plugin.setUp(requestFor(bench, POD, sourceOf('iscsi', name)), deleted.signal);
    await until('it is being checked', () => isHeld(device));
    deleted.abort(new Error('deleted'));
    await assert.rejects(first, /deleted/);
    let ended = '';
    const second = plugin
      .tearDown(ON_DISK, bench.signal)
      .then(() => (ended = isHeld(device) ? 'while it is held' : 'when it was free'));
    await assert.rejects(open('iscsi').tearDown(ON_DISK, bench.signal), { kind: 'conflict' }, 'a restarted agent');
    assert.deepEqual([ended, detached(), mountsBeneath(bench.root)], ['', [], [store.dir]]);
    store.thaw();
    await second;
    assert.equal(ended, 'when it was free');
    assert.equal(detached().length, 3);
  });

  /** Gives the file system a journal to replay: as a power cut leaves it. */
  const needRecovery = (device: string): void => {
    const [dir, copy] = [join(bench.root, 'dirty'), join(bench.root, 'copy')];
    mkdirSync(dir);
    run('mount', device, dir);
    for (let i = 0; i < 100; i++) writeFileSync(join(dir, `file-${i}`), 'x');
    run('sync', '-f', dir);
    writeFileSync(copy, readFileSync(device));
    run('umount', dir);
    run('dd', `if=${copy}`, `of=${device}`, 'bs=1M', 'conv=fsync', 'status=none');
    assert.match(run('dumpe2fs', '-h', device), /needs_recovery/);
  };
});
