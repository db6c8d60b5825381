import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KubeletError } from '../lib/errors.ts';
import { ago, attachLimitError, mountFailure, notMountedError, tellMismatch } from './mount-messages.ts';

const missing = { unmounted: ['b', 'a'], unattached: ['c'], unresolved: [] };
const MISSING = 'unmounted volumes=[a b], unattached volumes=[c], failed to process volumes=[]';
const failed = (detail: Record<string, unknown>): KubeletError => new KubeletError('internal', 'why', { detail });

describe('the event of a volume that is not mounted', () => {
  const rows: readonly [string, unknown, string, string][] = [
    ['no stage', new Error('why'), 'FailedMount', 'MountVolume.SetUp failed for volume "v" : why'],
    [
      'a system call',
      Object.assign(new Error("EEXIST: file already exists, mkdir '/proc/self/fd/28/p'"), {
        code: 'EEXIST',
        syscall: 'mkdir',
        path: '/proc/self/fd/28/p',
      }),
      'FailedMount',
      'MountVolume.SetUp failed for volume "v" : mkdir p: file exists',
    ],
    [
      'its stage',
      failed({ stage: 'MountVolume.MountDevice' }),
      'FailedMount',
      'MountVolume.MountDevice failed for volume "v" : why',
    ],
    [
      'a stage that says so itself',
      failed({ stage: 'MountVolume.WaitForAttach failed twice' }),
      'FailedMount',
      'MountVolume.WaitForAttach failed twice for volume "v" : why',
    ],
    [
      'attaching',
      failed({ stage: 'AttachVolume.Attach' }),
      'FailedAttachVolume',
      'AttachVolume.Attach failed for volume "v" : why',
    ],
    [
      'expansion',
      failed({ stage: 'NodeExpandVolume.NodeExpandVolume' }),
      'VolumeResizeFailed',
      'NodeExpandVolume.NodeExpandVolume failed for volume "v" : why',
    ],
    [
      'a device',
      failed({ stage: 'MapVolume.SetUpDevice' }),
      'FailedMapVolume',
      'MapVolume.SetUpDevice failed for volume "v" : why',
    ],
    [
      'a device of another node',
      failed({ stage: 'MapVolume.NodeAffinity check' }),
      'FailedMount',
      'MapVolume.NodeAffinity check failed for volume "v" : why',
    ],
    ['not resolved', failed({ unresolved: true }), 'FailedMount', `Unable to attach or mount volumes: ${MISSING}: why`],
  ];
  for (const [name, err, reason, message] of rows)
    it(name, () => {
      const event = mountFailure('v', err, missing);
      assert.deepEqual([event.reason, event.message], [reason, message]);
      assert.equal(event.unresolved, name === 'not resolved');
    });
});

describe('the error of a pod whose volumes are not mounted', () => {
  for (const [complaints, message] of [
    [[], `${MISSING}: timed out`],
    [['a is slow', 'b is away'], `${MISSING}: timed out: a is slow; b is away`],
  ] as const)
    it(`${complaints.length} complaints`, () => {
      const error = notMountedError(missing, complaints, 'timed out');
      assert.equal(error.message, message);
      assert.deepEqual(error.detail, { unmounted: ['a', 'b'] });
    });

  it('names the limit of attachments', () =>
    assert.match(
      attachLimitError(missing, 'full').message,
      /attachment limit, rejecting pod. unmounted volumes=\[a b\]/,
    ));

  for (const [now, since, text] of [
    [10_400, 0, '10s'],
    [0, 5000, '0s'],
    [90_000, 0, '1m30s'],
  ] as const)
    it(`${text} ago`, () => assert.equal(ago(now, since), text));
});

it('a disk with another file system is told of its persistent volume, and only that', () => {
  const mismatch = failed({ stage: 'MountVolume.MountDevice', filesystemMismatch: true });
  const persistent = { volume: { metadata: { name: 'pv' }, spec: {} }, mountOptions: [], migrated: false };
  const rows: readonly [string, unknown, typeof persistent | undefined, string[]][] = [
    [
      'another file system',
      mismatch,
      persistent,
      ['pv Warning FailedMountOnFilesystemMismatch MountVolume failed for volume "pv" why'],
    ],
    ['a volume of the pod’s own', mismatch, undefined, []],
    ['the same file system', failed({ filesystemMismatch: false }), persistent, []],
    ['another failure', new Error('why'), persistent, []],
  ];
  for (const [what, err, of, expected] of rows) {
    const told: string[] = [];
    tellMismatch({ volume: (pv, ...rest) => void told.push([pv.metadata.name, ...rest].join(' ')) }, of, err);
    assert.deepEqual(told, expected, what);
  }
});
