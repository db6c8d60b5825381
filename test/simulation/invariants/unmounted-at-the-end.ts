// Nothing is mounted of a pod that is being deleted, or gone, once its containers are: what takes a pod in is over before its
// end begins.
import { MINUTE, podNameOf, uidOf, type Invariant } from './violation.ts';

const BOUND_MS = MINUTE;

export const unmountedAtTheEnd: Invariant = ({ pods, manifests, running, sandboxes, mounts, overdue }) => {
  const alive = new Set([...running.map(uidOf), ...sandboxes.filter((s) => s.ready).map(uidOf)]);
  for (const s of sandboxes) if (manifests.has(podNameOf(s).replace(/-n1$/, ''))) alive.add(uidOf(s));
  return mounts
    .map((target) => ({ target, uid: /\/pods\/([^/]+)\//.exec(target)?.[1] ?? '' }))
    .filter(({ uid }) => uid !== '' && pods.get(uid)?.isDeleting !== false && !alive.has(uid))
    .filter(({ target }) => overdue(`mounted at the end ${target}`, BOUND_MS))
    .map(({ target }) => `${target} is mounted, and its pod has ended`);
};
