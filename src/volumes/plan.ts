// What to do about one volume, from what is wanted and what is there. Pure.
import type { Pod, Volume } from '../core/pod.ts';
import { containersOf } from '../core/pod.ts';
import { sameData } from '../lib/same-data.ts';
import type { MountedVolume } from './plugin.ts';

/** What the node has of a volume. `uncertain`: something may be there, by an earlier run or a failed step. */
export type Actual =
  | { readonly is: 'unmounted' }
  | { readonly is: 'uncertain'; readonly reconstructed: boolean }
  | { readonly is: 'mounted'; readonly mounted: MountedVolume };

export type VolumeFacts = {
  readonly wanted: boolean;
  readonly actual: Actual;
  /** Content may have changed since it was last written. */
  readonly stale: boolean;
  /** Monotonic time before which a failed step is not repeated. */
  readonly notBefore: number;
};

export type PlanContext = {
  readonly now: number;
  /** The pod was set and every volume it wants is known by its place on disk: an unclaimed place is really unwanted. */
  readonly placesKnown: boolean;
};

export type VolumeStep =
  | { readonly do: 'mount' }
  | { readonly do: 'refresh' }
  | { readonly do: 'unmount' }
  | { readonly do: 'forget' }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'nothing' };

export function planVolume(volume: VolumeFacts, context: PlanContext): VolumeStep {
  const step = wantedStep(volume, context);
  const pause = volume.notBefore - context.now;
  return pause > 0 && isWork(step) ? { do: 'wait', ms: pause } : step;
}

const isWork = (step: VolumeStep): boolean => step.do === 'mount' || step.do === 'refresh' || step.do === 'unmount';

function wantedStep(volume: VolumeFacts, context: PlanContext): VolumeStep {
  const { actual } = volume;
  if (volume.wanted) {
    if (actual.is !== 'mounted') return { do: 'mount' };
    return volume.stale ? { do: 'refresh' } : { do: 'nothing' };
  }
  if (actual.is === 'unmounted') return { do: 'forget' };
  if (actual.is === 'uncertain' && actual.reconstructed && !context.placesKnown) return { do: 'nothing' };
  return { do: 'unmount' };
}

/** The volumes of a pod that some container uses. Others are never mounted. */
export function usedVolumes(pod: Pod): Volume[] {
  const used = new Set<string>();
  for (const { container } of containersOf(pod)) {
    for (const mount of container.volumeMounts ?? []) used.add(mount.name);
    for (const device of container.volumeDevices ?? []) used.add(device.name);
    for (const env of container.env ?? []) {
      if (env.valueFrom?.fileKeyRef !== undefined) used.add(env.valueFrom.fileKeyRef.volumeName);
    }
  }
  return (pod.spec.volumes ?? []).filter((volume) => used.has(volume.name));
}

/** Volumes show a pod's names, labels, annotations and spec. Its status changes all the time and is in none of them. */
export const hasSameContent = (a: Pod, b: Pod): boolean =>
  a === b ||
  (sameData(a.metadata.labels, b.metadata.labels) &&
    sameData(a.metadata.annotations, b.metadata.annotations) &&
    sameData(a.spec, b.spec));
