// A change of a ConfigMap reaches the volumes of running pods.
import { MINUTE, uidOf, type Invariant } from './violation.ts';

export const newsArrives: Invariant = ({ pods, running, fileOf, configValue, overdue }) => {
  const alive = new Set(running.map((c) => uidOf(c)));
  return [...pods.values()]
    .filter((p) => p.kind === 'volumes' && alive.has(p.uid) && !p.isDeleting && !p.hasEnded)
    .filter((p) => fileOf(p.uid, 'kubernetes.io~configmap/settings/value') !== configValue)
    .filter((p) => overdue(`news ${p.uid} ${configValue}`, 4 * MINUTE))
    .map(
      (p) =>
        `${p.pod.metadata.name} still has ${fileOf(p.uid, 'kubernetes.io~configmap/settings/value')}, not ${configValue}`,
    );
};
