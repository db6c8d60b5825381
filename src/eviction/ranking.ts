// In which order pods have to go. Pure.
import type { Pod } from '../core/pod.ts';
import { podRequests } from '../core/pod-resources.ts';
import { toNumber } from '../core/quantity.ts';
import type { ContainerFigures, DiskLayout, FsFigure, PodFigures } from './figures.ts';
import { SIGNALS, type Signal } from './signals.ts';

export type FiguresOf = (pod: Pod) => PodFigures | undefined;

/** Which of a pod's files count. */
export type Places = { readonly rootfs: boolean; readonly logs: boolean; readonly volumes: boolean };
type Measure = 'usedBytes' | 'inodesUsed';

/** The first one goes first: whoever uses more than asked for, then lower priority, then the larger excess. */
export function rankPods(
  pods: readonly Pod[],
  signal: Signal,
  layout: DiskLayout,
  figuresOf: FiguresOf,
): readonly Pod[] {
  const excess = new Map(pods.map((pod) => [pod, excessOf(pod, signal, layout, figuresOf(pod))]));
  const of = (pod: Pod): number => excess.get(pod) ?? Infinity;
  const priority = (pod: Pod): number => pod.spec.priority ?? 0;
  const exceeds = (pod: Pod): number => Number(of(pod) > 0);
  const byPriority = (a: Pod, b: Pod): number => priority(a) - priority(b);
  const byExcess = (a: Pod, b: Pod): number => (of(a) === of(b) ? 0 : of(b) - of(a));
  const unknown = (pod: Pod): number => Number(of(pod) === Infinity);
  const byUnknown = (a: Pod, b: Pod): number => unknown(b) - unknown(a);
  const byWhetherExceeds = (a: Pod, b: Pod): number => exceeds(b) - exceeds(a);
  const pids = signal === 'pid.available';
  return pods.toSorted(
    (a, b) => (pids ? 0 : byUnknown(a, b) || byWhetherExceeds(a, b)) || byPriority(a, b) || byExcess(a, b),
  );
}

/** Use beyond the request; a pod nobody has figures of counts as using everything. */
function excessOf(pod: Pod, signal: Signal, layout: DiskLayout, figures: PodFigures | undefined): number {
  if (figures === undefined) return Infinity;
  const { resource } = SIGNALS[signal];
  if (resource === 'pids') return figures.process_stats?.process_count ?? 0;
  const request = podRequests(pod).get(resource);
  const asked = request === undefined ? 0 : toNumber(request);
  if (resource === 'memory') return memoryOf(figures) - asked;
  const measure = resource === 'inodes' ? 'inodesUsed' : 'usedBytes';
  return diskUse(pod, figures, placesFor(signal, layout), measure) - asked;
}

export const memoryOf = (figures: PodFigures): number =>
  figures.memory?.workingSetBytes ?? figures.containers.reduce((sum, c) => sum + (c.memory?.workingSetBytes ?? 0), 0);

/** What of a pod is on the filesystem that runs low. */
function placesFor(signal: Signal, layout: DiskLayout): Places {
  const fs = signal.split('.')[0];
  if (layout === 'shared') return { rootfs: true, logs: true, volumes: true };
  if (layout === 'dedicated')
    return fs === 'nodefs'
      ? { rootfs: false, logs: true, volumes: true }
      : { rootfs: true, logs: false, volumes: false };
  return fs === 'imagefs'
    ? { rootfs: false, logs: false, volumes: false }
    : { rootfs: true, logs: true, volumes: true };
}

export function diskUse(pod: Pod, figures: PodFigures, places: Places, measure: Measure): number {
  const local = localVolumesOf(pod);
  const volumes = places.volumes ? (figures.volume ?? []).filter((v) => local.has(v.name)) : [];
  const own = figures.containers.reduce((sum, c) => sum + containerDiskUse(c, places, measure), 0);
  return own + volumes.reduce((sum, v) => sum + (v[measure] ?? 0), 0);
}

export const containerDiskUse = (c: ContainerFigures, places: Places, measure: Measure): number =>
  (places.rootfs ? used(c.rootfs, measure) : 0) + (places.logs ? used(c.logs, measure) : 0);

const used = (fs: FsFigure | undefined, measure: Measure): number => fs?.[measure] ?? 0;

/** Volumes that use up the node's own disk. */
const localVolumesOf = (pod: Pod): ReadonlySet<string> =>
  new Set(
    (pod.spec.volumes ?? [])
      .filter(
        (v) =>
          v.hostPath !== undefined ||
          v.configMap !== undefined ||
          (v.emptyDir !== undefined && v.emptyDir.medium !== 'Memory'),
      )
      .map((v) => v.name),
  );
