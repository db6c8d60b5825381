// How full the filesystem is that the runtime keeps images on.
import { statfs } from 'node:fs/promises';
import type { CriImages } from '../cri/services.ts';
import { KubeletError } from '../lib/errors.ts';
import type { DiskUsage } from './image-gc-plan.ts';

export async function imageFilesystem(
  images: Pick<CriImages, 'imageFsInfo'>,
  signal: AbortSignal,
): Promise<DiskUsage & { readonly mountpoint: string }> {
  const { imageFilesystems } = await images.imageFsInfo({}, signal);
  const mountpoint = imageFilesystems[0]?.fsId?.mountpoint;
  if (mountpoint === undefined) throw new KubeletError('unavailable', 'the runtime names no image filesystem');
  const { bsize, blocks, bavail } = await statfs(mountpoint);
  return { mountpoint, capacityBytes: blocks * bsize, availableBytes: bavail * bsize };
}
