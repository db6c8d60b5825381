// Nothing is left of a pod that is gone: no container, sandbox, mount, directory, cgroup or log.
import { MINUTE, podNameOf, uidOf, type Invariant, type View } from './violation.ts';

const BOUND_MS = 10 * MINUTE;

export const givenBack: Invariant = (view) => {
  const { pods, manifests, overdue } = view;
  const staticUids = new Set(
    view.sandboxes.filter((s) => manifests.has(podNameOf(s).replace(/-n1$/, ''))).map((s) => uidOf(s)),
  );
  return leftovers(view)
    .filter(([uid]) => uid !== '' && !pods.has(uid) && !staticUids.has(uid))
    .filter(([uid, what]) => overdue(`left ${uid} ${what}`, BOUND_MS))
    .map(([uid, what]) => `the pod ${uid} is gone and its ${what} is still there`);
};

function leftovers({ containers, sandboxes, mounts, directories, cgroups, logs }: View): [uid: string, what: string][] {
  const mounted = mounts.map((path) => /\/pods\/([^/]+)\//.exec(path)?.[1] ?? '');
  return [
    ...containers.map((c): [string, string] => [uidOf(c), 'container']),
    ...sandboxes.map((s): [string, string] => [uidOf(s), 'sandbox']),
    ...mounted.map((uid): [string, string] => [uid, 'mount']),
    ...[...directories].map((uid): [string, string] => [uid, 'directory']),
    ...[...cgroups].map((uid): [string, string] => [uid, 'cgroup']),
    ...[...logs].map((uid): [string, string] => [uid, 'log directory']),
  ];
}
