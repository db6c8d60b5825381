// Pods that outgrew the local storage they were given: a volume's size limit, the pod's total, one container's limit.
import type { Pod } from '../core/pod.ts';
import { podLimits } from '../core/pod-resources.ts';
import { canonicalQuantity, formatQuantity, quantity, toNumber } from '../core/quantity.ts';
import type { DiskLayout, PodFigures } from './figures.ts';
import { containerDiskUse, diskUse } from './ranking.ts';

const STORAGE = 'ephemeral-storage';

export type StorageExcess = { readonly signal: string; readonly message: string };

/** Whether there is anything that the pod could outgrow. */
export const hasStorageLimit = ({ spec }: Pod): boolean =>
  spec.resources?.limits?.[STORAGE] !== undefined ||
  (spec.volumes ?? []).some(({ emptyDir }) => emptyDir?.sizeLimit !== undefined) ||
  [...spec.containers, ...(spec.initContainers ?? [])].some(
    ({ resources }) => resources?.limits?.[STORAGE] !== undefined,
  );

export function storageExcess(pod: Pod, figures: PodFigures, layout: DiskLayout): StorageExcess | undefined {
  return volumeExcess(pod, figures) ?? podExcess(pod, figures) ?? containerExcess(pod, figures, layout);
}

function volumeExcess(pod: Pod, figures: PodFigures): StorageExcess | undefined {
  for (const { name, emptyDir } of pod.spec.volumes ?? []) {
    if (emptyDir?.sizeLimit === undefined) continue;
    const limit = toNumber(quantity(emptyDir.sizeLimit));
    const usedBytes = figures.volume?.find((v) => v.name === name)?.usedBytes;
    if (limit <= 0 || usedBytes === undefined || usedBytes <= limit) continue;
    const text = canonicalQuantity(emptyDir.sizeLimit);
    return { signal: 'emptydirfs.limit', message: `Usage of EmptyDir volume "${name}" exceeds the limit "${text}". ` };
  }
  return undefined;
}

const EVERYWHERE = { rootfs: true, logs: true, volumes: true };

/** Whatever the disk: layers count too where they are on a filesystem of their own. */
function podExcess(pod: Pod, figures: PodFigures): StorageExcess | undefined {
  const limit = podLimits(pod).get(STORAGE);
  if (limit === undefined) return undefined;
  // The total lacks the logs of containers whose layer could not be measured.
  const parts = diskUse(pod, figures, EVERYWHERE, 'usedBytes');
  if (Math.max(figures[STORAGE]?.usedBytes ?? 0, parts) <= toNumber(limit)) return undefined;
  const text = formatQuantity(limit);
  return {
    signal: 'ephemeralpodfs.limit',
    message: `Pod ephemeral local storage usage exceeds the total limit of containers ${text}. `,
  };
}

function containerExcess(pod: Pod, figures: PodFigures, layout: DiskLayout): StorageExcess | undefined {
  const places = { rootfs: layout === 'shared', logs: true, volumes: false };
  for (const container of figures.containers) {
    const limit = pod.spec.containers.find((c) => c.name === container.name)?.resources?.limits?.[STORAGE];
    // No limit of its own: nothing at all is for the pod's total to judge.
    if (limit === undefined || toNumber(quantity(limit)) === 0) continue;
    if (containerDiskUse(container, places, 'usedBytes') <= toNumber(quantity(limit))) continue;
    const text = canonicalQuantity(limit);
    return {
      signal: 'ephemeralcontainerfs.limit',
      message: `Container ${container.name} exceeded its local ephemeral storage limit "${text}". `,
    };
  }
  return undefined;
}
