// A container runs only for a pod that somebody wants: one of the API server's or of a manifest. What nobody wants any more
// may take its grace period and a moment to end; what is shown as over has ended before.
import { MINUTE, podNameOf, uidOf, type Invariant } from './violation.ts';

const MAX_GRACE = MINUTE;

const STATIC = /-n1$/;

export const nothingElseRuns: Invariant = ({ running, pods, manifests, overdue }) => {
  // A broken manifest that an agent met at its start may be about any static pod: they stay until it is right or gone.
  const areKept = [...manifests.values()].includes('broken');
  const gone = running
    .filter((c) => !pods.has(uidOf(c)) && !manifests.has(podNameOf(c).replace(STATIC, '')))
    .filter((c) => !(areKept && STATIC.test(podNameOf(c))))
    .filter((c) => overdue(`runs ${c.id}`, MAX_GRACE + 2 * MINUTE))
    .map((c) => `${podNameOf(c)} (${uidOf(c)}) is gone, its container ${c.id.slice(0, 8)} still runs`);
  const over = running
    .filter((c) => pods.get(uidOf(c))?.hasEnded === true && overdue(`runs on ${c.id}`, MINUTE))
    .map((c) => `${podNameOf(c)} is shown as over, its container ${c.id.slice(0, 8)} still runs`);
  return [...gone, ...over];
};
