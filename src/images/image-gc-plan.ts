// Which unused images go, and in which order. Pure: no clock, no runtime.

export type SeenImage = {
  readonly id: string;
  readonly sizeBytes: number;
  readonly pinned: boolean;
  /** Monotonic milliseconds at which we first saw it: how old it was then is not known, so that it counts as new. */
  readonly firstDetectedMs: number;
  /** Monotonic milliseconds of the last look at which something used it; 0 when never. */
  readonly lastUsedMs: number;
  readonly inUse: boolean;
};

/** Longest unused first, then longest known. Pinned images and those in use are not among them. */
export const evictionOrder = (images: readonly SeenImage[]): readonly SeenImage[] =>
  images
    .filter((i) => !i.pinned && !i.inUse)
    .sort((a, b) => a.lastUsedMs - b.lastUsedMs || a.firstDetectedMs - b.firstDetectedMs);

/** What nobody used for longer than `maxAgeMs`. An image never used counts from when it was detected. */
export const tooOld = (candidates: readonly SeenImage[], nowMs: number, maxAgeMs: number): readonly SeenImage[] =>
  candidates.filter((i) => nowMs - Math.max(i.lastUsedMs, i.firstDetectedMs) > maxAgeMs);

/** Young images stay: whoever had them pulled is probably about to use them. */
export const oldEnough = (candidates: readonly SeenImage[], nowMs: number, minAgeMs: number): readonly SeenImage[] =>
  candidates.filter((i) => nowMs - i.firstDetectedMs >= minAgeMs);

export type DiskUsage = { readonly capacityBytes: number; readonly availableBytes: number };

export const usedPercent = ({ capacityBytes, availableBytes }: DiskUsage): number =>
  100 - Math.floor((Math.min(availableBytes, capacityBytes) * 100) / capacityBytes);

/** Bytes to free so that usage falls to the low threshold; 0 while it is below the high one. */
export function bytesToFree(disk: DiskUsage, highPercent: number, lowPercent: number): number {
  if (usedPercent(disk) < highPercent) return 0;
  const available = Math.min(disk.availableBytes, disk.capacityBytes);
  return Math.floor((disk.capacityBytes * (100 - lowPercent)) / 100) - available;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** `40.6 GiB` */
export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}

export const insufficientText = (disk: DiskUsage, freedBytes: number): string =>
  `Insufficient free disk space on the node's image filesystem (${usedPercent(disk)}% of ${sizeText(disk.capacityBytes)} used). ` +
  `Failed to free sufficient space by deleting unused images (freed ${freedBytes} bytes). ` +
  'Investigate disk usage, as it could be used by active images, logs, volumes, or other data.';
