// Volumes that are devices: mapped for the pods that run with them, given back by those that are over. Volumes that were to
// grow are as large as they should be where somebody uses them.
import { bytesOf } from '../../../src/core/quantity.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../src/core/storage.ts';
import type { ObjectStore } from '../../../src/devcluster/api/store.ts';
import type { CsiDriver } from '../world/csi-driver.ts';
import { MINUTE, uidOf, type Invariant, type SeenPod } from './violation.ts';

const BOUND_MS = 10 * MINUTE;
/** Claims are looked at with every sync of the pod, and a growth that failed is tried again after two minutes at most. */
const GROW_MS = 4 * MINUTE;
/** As the volumes are made. */
const FIRST_BYTES = 2 ** 30;
const CSI = '/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices';
const LINKS = 'volumeDevices/kubernetes.io~csi';

/** A claim and its volume, as the cluster has them. */
export type SeenClaim = {
  readonly name: string;
  readonly volumeBytes: number;
  readonly claimBytes: number;
  /** The driver said that it cannot be. */
  readonly isInfeasible: boolean;
};

export type BlockView = {
  readonly driver: Pick<CsiDriver, 'staged' | 'publishedOf' | 'bytes' | 'blocks'>;
  /** Files under loop devices. */
  readonly loops: readonly string[];
  /** Where a link of a pod points to. */
  readonly linkOf: (uid: string, path: string) => string | undefined;
  readonly claims: readonly SeenClaim[];
};

const isBlock = (claim: string): boolean => claim.startsWith('block-');
const claimsOf = ({ pod }: SeenPod): readonly string[] =>
  (pod.spec.volumes ?? []).flatMap((v) => v.persistentVolumeClaim?.claimName ?? []);

export const devicesMapped: Invariant = ({ block, pods, running }) =>
  block === undefined
    ? []
    : [...new Set(running.map((c) => uidOf(c)))].flatMap((uid) => {
        const seen = pods.get(uid);
        if (seen === undefined) return [];
        const { loops, linkOf, driver } = block;
        return claimsOf(seen)
          .filter(isBlock)
          .flatMap((claim) => {
            const name = `volume-${claim}`;
            const bind = `${CSI}/${name}/dev/${uid}`;
            const binds = driver.blocks.bindsOf(`handle-${claim}`);
            const target = `${CSI}/publish/${name}/${uid}`;
            const what = `${seen.pod.metadata.name} runs and its device ${name}`;
            return [
              ...(binds.includes(target) ? [] : [`${what} is not published`]),
              ...(binds.includes(bind) ? [] : [`${what} is not mapped`]),
              ...(loops.includes(bind) ? [] : [`${what} is not held by a loop device`]),
              ...(linkOf(uid, `${LINKS}/${name}`) === target ? [] : [`${what} has no link`]),
            ];
          });
      });

export const devicesGivenBack: Invariant = ({ block, pods, overdue }) => {
  if (block === undefined) return [];
  const { driver, loops } = block;
  const volumes = [...driver.staged.keys()];
  const binds = volumes.flatMap((volume) => driver.blocks.bindsOf(volume));
  const left = [...binds, ...loops.map((file) => `a loop device over ${file}`)]
    .map((what) => ({ what, seen: pods.get(what.split('/').at(-1) ?? '') }))
    .filter(({ seen }) => seen === undefined || seen.hasEnded)
    .filter(({ what }) => overdue(`device ${what}`, BOUND_MS))
    .map(({ what }) => `${what} is still there, and its pod is over`);
  const staged = volumes
    .filter((volume) => driver.publishedOf(volume).length === 0 && overdue(`block staged ${volume}`, BOUND_MS))
    .map((volume) => `${volume} is still staged, and no pod uses it`);
  return [...left, ...staged];
};

/** Claim and driver have what the cluster gave the volume. */
export const growthArrives: Invariant = ({ block, pods, running, overdue }) => {
  if (block === undefined) return [];
  const alive = new Set(running.map((c) => uidOf(c)));
  const used = new Set(
    [...pods.values()].filter((p) => alive.has(p.uid) && !p.isDeleting && !p.hasEnded).flatMap((p) => claimsOf(p)),
  );
  return block.claims
    .filter(({ name, isInfeasible }) => used.has(name) && !isInfeasible)
    .flatMap(({ name, volumeBytes, claimBytes }) => {
      const bytes = block.driver.bytes.get(`handle-${name}`) ?? FIRST_BYTES;
      // A volume may be asked to grow again before it has grown: what counts is that it does.
      const isStuck =
        (bytes < volumeBytes && overdue(`driver grows ${name} ${bytes}`, GROW_MS)) ||
        (claimBytes < volumeBytes && overdue(`claim grows ${name} ${claimBytes}`, GROW_MS));
      if (!isStuck) return [];
      return [`${name} was to have ${volumeBytes} bytes, has ${bytes}, and its claim says ${claimBytes}`];
    });
};

/** Claims of volumes of a driver. */
export function claimsIn(store: ObjectStore, driver: string): readonly SeenClaim[] {
  return store.list('persistentvolumes').flatMap(({ object }) => {
    const { spec } = object as unknown as PersistentVolume;
    const name = spec.claimRef?.name ?? '';
    const claim = store.get('persistentvolumeclaims', `default/${name}`)?.object as PersistentVolumeClaim | undefined;
    if (spec.csi?.driver !== driver || claim === undefined) return [];
    const state = claim.status?.allocatedResourceStatuses?.['storage'] ?? '';
    return {
      name,
      volumeBytes: bytesOf(spec.capacity?.['storage'] ?? '0'),
      claimBytes: bytesOf(claim.status?.capacity?.['storage'] ?? '0'),
      isInfeasible: state === 'NodeResizeInfeasible',
    };
  });
}
