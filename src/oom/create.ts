// Fits the watcher to this machine: where the kernel counts kills, and who hints at them.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { cgroupPath, kubepodsName, parseCgroupRoot, type CgroupDriver } from '../host/cgroups/cgroup-names.ts';
import { detectCgroups, type CgroupLayout } from '../host/cgroups/layout.ts';
import { OomWatcher, type OomWatcherDeps } from './oom-watcher.ts';

export type OomDeps = {
  readonly desired: { get(uid: PodUid): Pod | undefined };
  readonly observer: {
    onOom(fn: () => void): void;
    readonly cache: {
      get(uid: PodUid): PodSnapshot | undefined;
      onChange(fn: (uid: PodUid, events: Parameters<OomWatcher['observed']>[0]) => void): void;
    };
  };
  readonly events: OomWatcherDeps['events'];
  readonly wake: (uid: PodUid) => void;
};

export async function createOomWatcher(
  { clock, config, gates, log }: Environment,
  { desired, observer, events, wake }: OomDeps,
  cgroupDriver: CgroupDriver,
): Promise<OomWatcher> {
  const watcher = new OomWatcher(
    {
      pods: {
        pod: (uid) => desired.get(uid),
        containerName: (uid, id) => observer.cache.get(uid)?.containers.find((c) => c.id === id)?.name,
      },
      events,
      onContainerOom: ({ podUid }) => wake(podUid),
      clock,
      log: log.child({ component: 'oom' }),
    },
    {
      kmsgPath: '/dev/kmsg',
      mayBeClosed: gates.enabled('KubeletInUserNamespace'),
      memoryEventsPath: memoryEventsPath(await detectCgroups(), config.cgroupRoot, cgroupDriver),
    },
  );
  observer.onOom(() => watcher.lookSoon());
  observer.cache.onChange((_, seen) => watcher.observed(seen));
  return watcher;
}

/** Of the cgroup above all pods; only cgroup v2 counts there. */
export function memoryEventsPath(layout: CgroupLayout, cgroupRoot: string, driver: CgroupDriver): string | undefined {
  if (layout.version !== 2) return undefined;
  const kubepods = kubepodsName(parseCgroupRoot(cgroupRoot, driver));
  return join(layout.mountPoint, cgroupPath(kubepods, driver), 'memory.events');
}
