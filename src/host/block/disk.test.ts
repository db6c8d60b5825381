import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KubeletError } from '../../lib/errors.ts';
import type { ChildResult } from '../mounts/child.ts';
import type { HostCommands } from '../mounts/commands.ts';
import { Disks } from './disk.ts';

const never = new AbortController().signal;
const ok: ChildResult = { code: 0, output: '' };

/** Answers by the name of the tool; records what was run. */
class ScriptedCommands implements HostCommands {
  readonly ran: string[] = [];
  readonly #answers: Record<string, ChildResult | Error | Promise<ChildResult>>;

  constructor(answers: Record<string, ChildResult | Error | Promise<ChildResult>>) {
    this.#answers = answers;
  }

  run(command: string, args: readonly string[]): Promise<ChildResult> {
    this.ran.push([command, ...args].join(' '));
    const answer = this.#answers[command] ?? ok;
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  }
}

const empty: ChildResult = { code: 2, output: '' };
const ext4: ChildResult = { code: 0, output: 'DEVNAME=/dev/d\nTYPE=ext4' };
const xfs: ChildResult = { code: 0, output: 'DEVNAME=/dev/d\nTYPE=xfs' };
const partitions: ChildResult = { code: 0, output: 'DEVNAME=/dev/d\nPTTYPE=gpt' };
const PROBE = 'blkid -p -s TYPE -s PTTYPE -o export /dev/d';

const open = (answers: Record<string, ChildResult | Error | Promise<ChildResult>>) => {
  const commands = new ScriptedCommands(answers);
  return { commands, disks: new Disks({ commands, patient: commands }) };
};

describe('format and mount', () => {
  const rows: {
    name: string;
    blkid: ChildResult;
    fsType?: string;
    options?: string[];
    answers?: Record<string, ChildResult | Error>;
    ran: string[];
    error?: RegExp;
    mismatch?: boolean;
  }[] = [
    {
      name: 'an empty device gets ext4 by default',
      blkid: empty,
      ran: ['mkfs.ext4 -F -m0 /dev/d', 'mount -t ext4 -o defaults /dev/d /t'],
    },
    {
      name: 'an empty device gets what is asked for',
      blkid: empty,
      fsType: 'xfs',
      options: ['noatime'],
      ran: ['mkfs.xfs -f /dev/d', 'mount -t xfs -o noatime,defaults /dev/d /t'],
    },
    {
      name: 'others get no options',
      blkid: empty,
      fsType: 'btrfs',
      ran: ['mkfs.btrfs /dev/d', 'mount -t btrfs -o defaults /dev/d /t'],
    },
    {
      name: 'an empty device is not formatted read-only',
      blkid: empty,
      options: ['ro'],
      ran: [],
      error: /^cannot mount unformatted disk \/dev\/d as we are manipulating it in read-only mode$/,
    },
    {
      name: 'an old file system is checked',
      blkid: ext4,
      ran: ['fsck -a /dev/d', 'mount -t ext4 -o defaults /dev/d /t'],
    },
    {
      name: 'read-only there is no check',
      blkid: ext4,
      options: ['ro'],
      ran: ['mount -t ext4 -o ro,defaults /dev/d /t'],
    },
    {
      name: 'corrected errors are fine, so is an odd exit code',
      blkid: ext4,
      answers: { fsck: { code: 1, output: 'fixed' } },
      ran: ['fsck -a /dev/d', 'mount -t ext4 -o defaults /dev/d /t'],
    },
    {
      name: 'errors that stay are not',
      blkid: ext4,
      answers: { fsck: { code: 4, output: 'bad' } },
      ran: ['fsck -a /dev/d'],
      error: /^'fsck' found errors on device \/dev\/d but could not correct them: bad$/,
    },
    {
      name: 'no fsck on this machine',
      blkid: ext4,
      answers: { fsck: new KubeletError('unavailable', 'cannot run fsck') },
      ran: ['fsck -a /dev/d', 'mount -t ext4 -o defaults /dev/d /t'],
    },
    {
      name: 'partitions are never written over',
      blkid: partitions,
      answers: { mount: { code: 32, output: 'wrong fs type' } },
      ran: ['mount -t ext4 -o defaults /dev/d /t'],
      error:
        /^mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t ext4 -o defaults \/dev\/d \/t\nOutput: wrong fs type\n$/,
      mismatch: false,
    },
    {
      name: 'another file system than asked for',
      blkid: xfs,
      answers: { mount: { code: 32, output: 'wrong fs type' } },
      ran: ['fsck -a /dev/d', 'mount -t ext4 -o defaults /dev/d /t'],
      error: /^mount failed/,
      mismatch: true,
    },
    {
      name: 'a device that cannot be read is never taken for empty',
      blkid: { code: 8, output: 'ambivalent' },
      ran: [],
      error: /^blkid .* failed: exit status 8: ambivalent$/,
    },
    {
      name: 'a format that fails',
      blkid: empty,
      answers: { 'mkfs.ext4': { code: 1, output: 'in use' } },
      ran: ['mkfs.ext4 -F -m0 /dev/d'],
      error: /^format of disk \/dev\/d failed: type:\("ext4"\) errcode:\(exit status 1\) output:\(in use\)$/,
    },
  ];
  for (const row of rows) {
    it(row.name, async () => {
      const { commands, disks } = open({ blkid: row.blkid, ...row.answers });
      const mounting = disks.formatAndMount(
        { device: '/dev/d', target: '/t', fsType: row.fsType ?? '', options: row.options ?? [] },
        never,
      );
      if (row.error === undefined) await mounting;
      else {
        await assert.rejects(mounting, (err: KubeletError) => {
          assert.match(err.message, row.error ?? /^$/);
          if (row.mismatch !== undefined) assert.equal(err.detail['filesystemMismatch'], row.mismatch);
          return true;
        });
      }
      assert.deepEqual(commands.ran, [PROBE, ...row.ran]);
    });
  }

  it('a type that is no name runs nothing', async () => {
    for (const fsType of ['../../tmp/x', '-o', 'a b', 'ext4/..']) {
      const { commands, disks } = open({ blkid: empty });
      await assert.rejects(disks.formatAndMount({ device: '/dev/d', target: '/t', fsType, options: [] }, never), {
        kind: 'invalid',
        message: `${JSON.stringify(fsType)} is not a type of file system`,
      });
      assert.deepEqual(commands.ran, []);
    }
  });

  it('an attempt that gives up leaves the format to the next one', async () => {
    const formatted = Promise.withResolvers<ChildResult>();
    const { commands, disks } = open({ blkid: empty, 'mkfs.ext4': formatted.promise });
    const disk = { device: '/dev/d', target: '/t', fsType: '', options: [] };
    const first = new AbortController();
    const reached = Promise.withResolvers<void>();
    const mounting = disks.formatAndMount({ ...disk, progress: () => reached.resolve() }, first.signal);
    await reached.promise;
    first.abort(new KubeletError('deadline', 'too long'));
    await assert.rejects(mounting, { message: 'too long' });
    const joined = Promise.withResolvers<void>();
    const second = disks.formatAndMount({ ...disk, progress: () => joined.resolve() }, never);
    await joined.promise;
    formatted.resolve(ok);
    await second;
    assert.deepEqual(commands.ran, [PROBE, 'mkfs.ext4 -F -m0 /dev/d', 'mount -t ext4 -o defaults /dev/d /t']);
  });

  const reachedBy = (answers: Record<string, ChildResult | Promise<ChildResult>>, step: string) => {
    const reached = Promise.withResolvers<void>();
    const progress = (doing: string): void => void (doing.startsWith(step) && reached.resolve());
    const disk = { device: '/dev/d', target: '/t', fsType: '', options: [], progress };
    return { ...open(answers), disk, reached: reached.promise };
  };

  it('a device is idle when the command under way has ended; what nobody wants any more is not mounted', async () => {
    const checked = Promise.withResolvers<ChildResult>();
    const { commands, disks, disk, reached } = reachedBy({ blkid: ext4, fsck: checked.promise }, 'checking');
    const deleted = new AbortController();
    const mounting = disks.formatAndMount(disk, deleted.signal);
    await reached;
    deleted.abort(new KubeletError('cancelled', 'deleted'));
    await assert.rejects(mounting, { message: 'deleted' });
    await disks.idle('/other', never);
    let isIdle = false;
    const idle = disks.idle('/t', never).then(() => (isIdle = true));
    await assert.rejects(disks.idle('/t', deleted.signal), { message: 'deleted' });
    assert.equal(isIdle, false);
    checked.resolve(ok);
    await idle;
    assert.deepEqual(commands.ran, [PROBE, 'fsck -a /dev/d']);
    await disks.idle('/t', never);
  });

  it('a mount that takes long is not ended with its attempt, and the next attempt joins it', async () => {
    const mounted = Promise.withResolvers<ChildResult>();
    const { commands, disks, disk, reached } = reachedBy({ blkid: ext4, mount: mounted.promise }, 'mounting');
    const first = new AbortController();
    const mounting = disks.formatAndMount(disk, first.signal);
    await reached;
    first.abort(new KubeletError('deadline', 'too long'));
    await assert.rejects(mounting, { message: 'too long' });
    const joined = Promise.withResolvers<void>();
    const second = disks.formatAndMount({ ...disk, progress: () => joined.resolve() }, never);
    await joined.promise;
    mounted.resolve(ok);
    await Promise.all([second, disks.idle('/t', never)]);
    assert.deepEqual(commands.ran, [PROBE, 'fsck -a /dev/d', 'mount -t ext4 -o defaults /dev/d /t']);
  });
});

describe('grow', () => {
  const rows: [string, ChildResult, string[], RegExp?][] = [
    ['ext4', ext4, ['resize2fs /dev/d']],
    ['xfs', xfs, ['xfs_growfs -d /m']],
    ['btrfs', { code: 0, output: 'TYPE=btrfs' }, ['btrfs filesystem resize max /m']],
    ['nothing there', empty, []],
    [
      'unknown',
      { code: 0, output: 'TYPE=vfat' },
      [],
      /: resize of format vfat is not supported for device \/dev\/d mounted at \/m$/,
    ],
    ['partitions', partitions, [], /resize of format partitions is not supported/],
  ];
  for (const [name, blkid, ran, error] of rows) {
    it(name, async () => {
      const { commands, disks } = open({ blkid });
      const growing = disks.grow('/dev/d', '/m', never);
      if (error === undefined) await growing;
      else await assert.rejects(growing, error);
      assert.deepEqual(commands.ran, [PROBE, ...ran]);
    });
  }
});
