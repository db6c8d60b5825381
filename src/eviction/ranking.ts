// In which order pods have to go. Pure.
import { uidOf, type Pod } from '../core/pod.ts';
import { hasPodLevelResources, podRequests, resourcesOf } from '../core/pod-resources.ts';
import { quantity, toNumber } from '../core/quantity.ts';
import type { ContainerFigures, DiskLayout, FsFigure, PodFigures } from './figures.ts';
import { SIGNALS, type Signal } from './signals.ts';

export type FiguresOf = (pod: Pod) => PodFigures | undefined;
const NOBODY: ReadonlySet<string> = new Set();

/** Which of a pod's files count. */
export type Places = { readonly rootfs: boolean; readonly logs: boolean; readonly volumes: boolean };
type Measure = 'usedBytes' | 'inodesUsed';

/**
 * The first one goes first: whoever uses more than asked for, then lower priority, then the larger excess. `unmeasured` are the
 * uids of pods whose volumes were never measured.
 */
export function rankPods(
  pods: readonly Pod[],
  signal: Signal,
  layout: DiskLayout,
  figuresOf: FiguresOf,
  unmeasured: ReadonlySet<string> = NOBODY,
): readonly Pod[] {
  const isUnknown = (pod: Pod): boolean => countsVolumes(signal, layout) && unmeasured.has(uidOf(pod));
  const excess = new Map(
    pods.map((pod) => [pod, isUnknown(pod) ? UNKNOWN : excessOf(pod, signal, layout, figuresOf(pod))]),
  );
  const of = (pod: Pod): Excess => excess.get(pod) ?? UNKNOWN;
  const priority = (pod: Pod): number => pod.spec.priority ?? 0;
  const exceeds = (pod: Pod): number => Number(of(pod).exceeds);
  const byPriority = (a: Pod, b: Pod): number => priority(a) - priority(b);
  const byExcess = (a: Pod, b: Pod): number => (of(a).amount === of(b).amount ? 0 : of(b).amount - of(a).amount);
  const unknown = (pod: Pod): number => Number(of(pod) === UNKNOWN);
  const byUnknown = (a: Pod, b: Pod): number => unknown(b) - unknown(a);
  const byWhetherExceeds = (a: Pod, b: Pod): number => exceeds(b) - exceeds(a);
  const pids = signal === 'pid.available';
  return pods.toSorted(
    (a, b) => (pids ? 0 : byUnknown(a, b) || byWhetherExceeds(a, b)) || byPriority(a, b) || byExcess(a, b),
  );
}

type Excess = { readonly exceeds: boolean; readonly amount: number };

/** Whether what pods write to their volumes is on the filesystem that runs low. */
export const countsVolumes = (signal: Signal, layout: DiskLayout): boolean =>
  isDisk(signal) && placesFor(signal, layout).volumes;

const isDisk = (signal: Signal): boolean => !['memory', 'pids'].includes(SIGNALS[signal].resource);

/** A pod nobody has figures of counts as using everything. */
const UNKNOWN: Excess = { exceeds: true, amount: Infinity };

/** Use beyond the request. Nobody can ask for inodes: there upstream takes the bytes of storage asked for off their count. */
function excessOf(pod: Pod, signal: Signal, layout: DiskLayout, figures: PodFigures | undefined): Excess {
  if (figures === undefined) return UNKNOWN;
  const { resource } = SIGNALS[signal];
  if (resource === 'pids') return { exceeds: true, amount: figures.process_stats?.process_count ?? 0 };
  const asked = requestOf(pod, resource === 'memory' ? 'memory' : 'ephemeral-storage');
  const isInodes = resource === 'inodes';
  const measure = isInodes ? 'inodesUsed' : 'usedBytes';
  const use = resource === 'memory' ? memoryOf(figures) : diskUse(pod, figures, placesFor(signal, layout), measure);
  return { exceeds: use > (isInodes ? 0 : asked), amount: use - asked };
}

/**
 * What eviction leaves a pod, as upstream reckons: where the pod as a whole asks for something, its containers' requests do
 * not count, and overhead only adds to a request.
 */
function requestOf(pod: Pod, resource: string): number {
  const podLevel = hasPodLevelResources(pod) ? pod.spec.resources?.requests : undefined;
  const list = hasPodLevelResources(pod) ? resourcesOf(podLevel) : podRequests(pod, { withoutOverhead: true });
  const own = toNumber(list.get(resource) ?? quantity('0'));
  return own === 0 ? 0 : own + toNumber(quantity(pod.spec.overhead?.[resource]));
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
          (v.emptyDir !== undefined && (v.emptyDir.medium ?? '') === ''),
      )
      .map((v) => v.name),
  );
