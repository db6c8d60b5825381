// What a driver says a volume holds, in the terms of the statistics. Pure.
import { VolumeUsageUnit, type NodeGetVolumeStatsResponse } from '../../lib/csi-api/gen/csi.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { VolumeUsage } from '../volume-stats.ts';

/** `withHealth`: the driver knows about the health of volumes, and somebody wants to. */
export function usageOf(answer: NodeGetVolumeStatsResponse, withHealth: boolean): Omit<VolumeUsage, 'source'> {
  const { usage, volumeCondition } = answer;
  if (usage.length === 0 && !withHealth)
    throw new KubeletError('invalid', 'failed to get usage from response. usage is nil');
  const of = (unit: number): { total: number; available: number; used: number } =>
    usage.find((entry) => entry.unit === unit) ?? { total: 0, available: 0, used: 0 };
  const [bytes, inodes] = [of(VolumeUsageUnit.BYTES), of(VolumeUsageUnit.INODES)];
  return {
    usedBytes: bytes.used,
    capacityBytes: bytes.total,
    availableBytes: bytes.available,
    inodesUsed: inodes.used,
    inodes: inodes.total,
    inodesFree: inodes.available,
    ...(withHealth ? { health: volumeCondition ?? { abnormal: false, message: '' } } : {}),
  };
}
