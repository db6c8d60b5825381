// Containers of a pod that is told to stop end within its grace period, and then its object goes.
import { MINUTE, podNameOf, SECOND, uidOf, type Invariant } from './violation.ts';

export const stopsInTime: Invariant = ({ pods, running, overdue }) =>
  [...pods.values()]
    .filter((p) => p.isDeleting)
    .flatMap(({ uid, pod }) => {
      const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 0) * SECOND;
      const mine = running.filter((c) => uidOf(c) === uid);
      const texts = mine
        .filter((c) => overdue(`stops ${c.id} ${graceMs}`, graceMs + MINUTE))
        .map((c) => `${podNameOf(c)} was to stop within ${graceMs}ms, its container ${c.id.slice(0, 8)} still runs`);
      if (overdue(`goes ${uid} ${graceMs}`, graceMs + 3 * MINUTE))
        texts.push(`${pod.metadata.name} was deleted and is still there`);
      return texts;
    });
