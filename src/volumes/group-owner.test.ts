import assert from 'node:assert/strict';
import { lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { errnoOf } from '../lib/errors.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { GroupOwner } from './group-owner.ts';
import { giveToGroup } from './ownership.ts';

const signal = new AbortController().signal;
const podOf = (fsGroup?: number): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'U-1' },
  spec: { containers: [], ...(fsGroup === undefined ? {} : { securityContext: { fsGroup } }) },
});
const PATH = '/var/lib/kubelet/pods/U-1/volumes/kubernetes.io~empty-dir/v';
const HOW = { readOnly: false, changePolicy: 'Always' } as const;

type Slow = {
  clock: ManualClock;
  reported: string[];
  doing: string[];
  file: () => void;
  end: () => void;
  owner: GroupOwner;
};

/** A change that goes on until it is ended. */
function slowOwner(): Slow {
  const clock = new ManualClock();
  const reported: string[] = [];
  const end = Promise.withResolvers<void>();
  const slow: Slow = {
    clock,
    reported,
    doing: [],
    file: () => undefined,
    end: end.resolve,
    owner: new GroupOwner(
      {
        clock,
        events: {
          pod: (_pod, type, reason, text) => void reported.push(`${type} ${reason} ${text}`),
          node: () => undefined,
        },
      },
      (_path, _how, _signal, onFile = () => undefined) => {
        slow.file = onFile;
        return end.promise;
      },
    ),
  };
  return slow;
}

test('a change that takes long is told after half a minute, then every minute with how far it got', async () => {
  const s = slowOwner();
  const request = { pod: podOf(2000), progress: (doing: string) => void s.doing.push(doing) };
  const given = s.owner.give(request, PATH, HOW, signal);
  s.file();
  await s.clock.advance(29_999);
  assert.deepEqual(s.reported, []);
  await s.clock.advance(1);
  const place = 'U-1/volumes/kubernetes.io~empty-dir/v';
  assert.deepEqual(s.reported, [
    `Warning VolumePermissionChangeInProgress Setting volume ownership for ${place} is taking longer than expected, consider using OnRootMismatch - https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods`,
  ]);
  s.file();
  await s.clock.advance(60_000);
  await s.clock.advance(60_000);
  const more = `Warning VolumePermissionChangeInProgress Setting volume ownership for ${place}, processed 2 files.`;
  assert.deepEqual(s.reported.slice(1), [more, more]);
  assert.deepEqual(s.doing, ['giving its files to group 2000, 1 so far', 'giving its files to group 2000, 2 so far']);
  s.end();
  await given;
  assert.equal(s.clock.pending, 0, 'nothing more is told');
});

test('a quick change and a pod without a group tell nothing', async () => {
  const s = slowOwner();
  await s.owner.give({ pod: podOf(), progress: () => undefined }, PATH, HOW, signal);
  const given = s.owner.give({ pod: podOf(2000), progress: () => undefined }, PATH, HOW, signal);
  s.end();
  await given;
  await s.clock.advance(600_000);
  assert.deepEqual(s.reported, []);
});

test('every file, link and directory counts once', async () => {
  const root = mkdtempSync(join(tmpdir(), 'group-owner-'));
  try {
    mkdirSync(join(root, 'd'));
    writeFileSync(join(root, 'd', 'f'), '');
    symlinkSync('nowhere', join(root, 'l'));
    let count = 0;
    await giveToGroup(root, { gid: process.getgid?.() ?? 0, ...HOW }, signal, () => void count++);
    assert.equal(count, 4);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('what will not change hands stays as it is, and the log tells of it', async () => {
  const warned: unknown[] = [];
  const owner = new GroupOwner({
    clock: new ManualClock(),
    events: { pod: () => undefined, node: () => undefined },
    log: { warn: (_, fields) => void warned.push(errnoOf(fields?.['err'])) },
  });
  // The kernel's own files: not even root may change their modes.
  const request = { pod: podOf(process.getgid?.() ?? 0), progress: () => undefined };
  await owner.give(request, '/proc/self/ns', HOW, signal);
  assert.deepEqual(warned, ['EPERM']);
});

test('a change of files is told with how it ended and its time; what was right already, or nobody wants, is not', async () => {
  const clock = new ManualClock();
  const events = { pod: () => undefined, node: () => undefined };
  const told: string[] = [];
  const ownershipChanged = (ok: boolean, seconds: number): void => void told.push(`${ok} ${seconds}`);
  const request = { pod: podOf(2000), progress: () => undefined, ownershipChanged };
  const owner = (files: number, end: 'well' | 'badly' = 'well'): GroupOwner =>
    new GroupOwner({ clock, events }, async (_path, _how, _signal, onFile = () => undefined) => {
      for (let i = 0; i < files; i++) onFile();
      await clock.advance(2000);
      if (end === 'badly') throw new Error('no');
    });
  await owner(0).give(request, PATH, HOW, signal);
  assert.deepEqual(told, [], 'nothing had to be changed');
  await owner(3).give(request, PATH, HOW, signal);
  await assert.rejects(owner(3, 'badly').give(request, PATH, HOW, signal));
  await assert.rejects(owner(3, 'badly').give(request, PATH, HOW, AbortSignal.abort()));
  assert.deepEqual(told, ['true 2', 'false 2']);
});

test('what the group has already is left as it is', async () => {
  const root = mkdtempSync(join(tmpdir(), 'owner-'));
  try {
    mkdirSync(join(root, 'dir'));
    const paths = ['dir', 'dir/file', 'dir/link'].map((name) => join(root, name));
    writeFileSync(join(root, 'dir/file'), '', { mode: 0o600 });
    symlinkSync('file', join(root, 'dir/link'));
    const give = (): Promise<void> => giveToGroup(root, { gid: process.getgid?.() ?? 0, ...HOW }, signal);
    const changedAt = (): bigint[] => paths.map((path) => lstatSync(path, { bigint: true }).ctimeNs);
    await give();
    assert.equal(lstatSync(join(root, 'dir/file')).mode & 0o777, 0o660);
    const before = changedAt();
    await give();
    assert.deepEqual(changedAt(), before);
  } finally {
    rmSync(root, { recursive: true });
  }
});
