// Volumes of a CSI driver: those of a running pod are published, those of pods that are gone are not, and nothing stays
// staged that no pod uses. The order of the calls is checked by the driver itself (`world/csi-driver.ts`).
import { CLAIMS } from '../workload/storage-pods.ts';
import { MINUTE, uidOf, type Invariant } from './violation.ts';

const BOUND_MS = 10 * MINUTE;

export const volumesGivenBack: Invariant = ({ csi, pods, overdue }) => {
  if (csi === undefined) return [];
  const left = csi.published
    .map((target) => ({ target, pod: pods.get(/\/pods\/([^/]+)\//.exec(target)?.[1] ?? '') }))
    .filter(({ pod }) => pod === undefined || pod.hasEnded)
    .filter(({ target }) => overdue(`published ${target}`, BOUND_MS))
    .map(({ target }) => `${target} is still published, and its pod is over`);
  const staged = [...csi.staged.keys()]
    .filter((volume) => csi.publishedOf(volume).length === 0 && overdue(`staged ${volume}`, BOUND_MS))
    .map((volume) => `${volume} is still staged, and no pod uses it`);
  return [...left, ...staged];
};

export const volumesStillThere: Invariant = ({ csi, pods, running }) => {
  if (csi === undefined) return [];
  const published = new Set(csi.published);
  return [...new Set(running.map((c) => uidOf(c)))].flatMap((uid) => {
    const { pod } = pods.get(uid) ?? {};
    return (pod?.spec.volumes ?? []).flatMap((volume) => {
      const claim = volume.persistentVolumeClaim?.claimName;
      if (claim === undefined ? volume.csi === undefined : !CLAIMS.includes(claim)) return [];
      const name = claim === undefined ? volume.name : `volume-${claim}`;
      const target = `/var/lib/kubelet/pods/${uid}/volumes/kubernetes.io~csi/${name}/mount`;
      return published.has(target) ? [] : [`${pod?.metadata.name} runs and its volume ${name} is not published`];
    });
  });
};
