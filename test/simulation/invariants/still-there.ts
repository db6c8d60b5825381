// Nothing is taken from a pod that still runs: its directory, its cgroup, and the volumes in memory that it was given.
import { uidOf, type Invariant } from './violation.ts';

const VOLUMES = ['kubernetes.io~secret/keys', 'kubernetes.io~empty-dir/memory', 'kubernetes.io~projected/all'];

export const stillThere: Invariant = ({ pods, running, directories, cgroups, mounts }) => {
  const mounted = new Set(mounts);
  return [...new Set(running.map((c) => uidOf(c)))]
    .map((uid) => pods.get(uid))
    .filter((p) => p !== undefined)
    .flatMap((p) => {
      if (p === undefined) return [];
      const name = `${p.pod.metadata.name} (${p.kind}) runs and`;
      const texts: string[] = [];
      if (!directories.has(p.uid)) texts.push(`${name} its directory is gone`);
      if (!cgroups.has(p.uid)) texts.push(`${name} its cgroup is gone`);
      if (p.kind !== 'volumes') return texts;
      for (const volume of VOLUMES)
        if (!mounted.has(`/var/lib/kubelet/pods/${p.uid}/volumes/${volume}`))
          texts.push(`${name} ${volume} is not mounted`);
      return texts;
    });
};
