import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VolumeUsageUnit, type NodeGetVolumeStatsResponse } from '../../lib/csi-api/gen/csi.ts';
import { usageOf } from './usage.ts';

const bytes = { unit: VolumeUsageUnit.BYTES, total: 10, used: 4, available: 6 };
const inodes = { unit: VolumeUsageUnit.INODES, total: 20, used: 5, available: 15 };
const answer = (more: Partial<NodeGetVolumeStatsResponse>): NodeGetVolumeStatsResponse =>
  ({ usage: [bytes, inodes], volumeCondition: undefined, ...more }) as NodeGetVolumeStatsResponse;
const both = {
  usedBytes: 4,
  capacityBytes: 10,
  availableBytes: 6,
  inodesUsed: 5,
  inodes: 20,
  inodesFree: 15,
};
const nothing = { ...both, usedBytes: 0, capacityBytes: 0, availableBytes: 0, inodesUsed: 0, inodes: 0, inodesFree: 0 };

describe('what a driver says a volume holds', () => {
  const sick = { abnormal: true, message: 'gone' };
  for (const [name, given, withHealth, expected] of [
    ['bytes and inodes', {}, false, both],
    ['bytes alone', { usage: [bytes] }, false, { ...both, inodesUsed: 0, inodes: 0, inodesFree: 0 }],
    ['its health', { volumeCondition: sick }, true, { ...both, health: sick }],
    ['no word on its health', {}, true, { ...both, health: { abnormal: false, message: '' } }],
    ['its health alone', { usage: [], volumeCondition: sick }, true, { ...nothing, health: sick }],
    ['health that nobody asked for', { volumeCondition: sick }, false, both],
  ] as const)
    it(name, () =>
      assert.deepEqual(usageOf(answer(given as Partial<NodeGetVolumeStatsResponse>), withHealth), expected),
    );

  it('nothing at all is an error', () =>
    assert.throws(() => usageOf(answer({ usage: [] }), false), /failed to get usage from response/));
});
