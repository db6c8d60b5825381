// What keeps the node clean while pods come and go: dead containers, logs, images, and news of killed processes.
import { join } from 'node:path';
import type { PodUid } from '../core/ids.ts';
import { CONTAINER_LOGS, containerIdOf, logLinkName } from '../core/log-links.ts';
import { quantity, toNumber } from '../core/quantity.ts';
import { GarbageCollector } from '../garbage/collector.ts';
import { criGarbage } from '../garbage/cri-garbage.ts';
import { detectCgroups } from '../host/cgroups/layout.ts';
import { imageFilesystem } from '../images/image-fs.ts';
import { ImageGc } from '../images/image-gc.ts';
import type { Runnable } from '../lib/supervise.ts';
import { LogRotation, removeContainerLogs } from '../logs/rotation.ts';
import { runningLogs } from '../logs/running-logs.ts';
import { OomWatcher } from '../oom/oom-watcher.ts';
import { contentMayBeRemoved, runtimeMayBeRemoved } from '../pods/worker-state.ts';
import type { PodStore } from '../pods/pod-store.ts';
import type { ContainerManagerHooks } from '../resources/container-manager-hook.ts';
import { cgroupPath, kubepodsName, parseCgroupName } from '../resources/cgroup-names.ts';
import type { ClusterPort } from './cluster-port.ts';
import { live, type Foundation } from './foundation.ts';
import type { Images } from './images.ts';
import type { PodLife } from './pod-life.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export type Upkeep = {
  readonly collector: GarbageCollector;
  readonly imageGc: ImageGc;
  readonly parts: readonly Runnable[];
};

export type UpkeepDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly images: Images;
  readonly hooks: ContainerManagerHooks;
  readonly store: PodStore;
  readonly life: () => PodLife;
  readonly sourcesReady: () => boolean;
};

const CONTAINER_GC_MS = 60_000;
const IMAGE_GC_FIELDS = [
  'imageGCHighThresholdPercent',
  'imageGCLowThresholdPercent',
  'imageMinimumGCAge',
  'imageMaximumGCAge',
];

export async function buildUpkeep(deps: UpkeepDeps): Promise<Upkeep> {
  const { base, edge, cluster, store } = deps;
  const { clock, config, registry } = base;
  const collector = buildCollector(deps);
  const imageGc = new ImageGc(
    {
      images: edge.cri.images,
      observed: edge.observer.cache,
      desired: store,
      records: deps.images.records,
      disk: (signal) => imageFilesystem(edge.cri.images, signal),
      events: cluster.events,
      infra: { clock, log: base.log.child({ component: 'image-gc' }), registry },
    },
    live(base, IMAGE_GC_FIELDS, (now) => ({
      get highThresholdPercent() {
        return now.current.imageGCHighThresholdPercent;
      },
      get lowThresholdPercent() {
        return now.current.imageGCLowThresholdPercent;
      },
      get minAgeMs() {
        return now.current.imageMinimumGCAgeMs;
      },
      get maxAgeMs() {
        return now.current.imageMaximumGCAgeMs;
      },
      keep: edge.sandboxImage === undefined ? [] : [edge.sandboxImage],
    })),
  );
  base.updates.subscribe(IMAGE_GC_FIELDS, () => imageGc.collectSoon());
  const rotation = new LogRotation(
    {
      clock,
      log: base.log.child({ component: 'log-rotation' }),
      runningLogs: () => runningLogs(edge.observer.cache.all()),
      reopen: async (containerId, signal) => void (await edge.cri.runtime.reopenContainerLog({ containerId }, signal)),
    },
    live(base, ['containerLogMaxSize', 'containerLogMaxFiles'], (now) => ({
      get maxSizeBytes() {
        return toNumber(quantity(now.current.containerLogMaxSize));
      },
      get maxFiles() {
        return now.current.containerLogMaxFiles;
      },
      intervalMs: config.containerLogMonitorIntervalMs,
      workers: config.containerLogMaxWorkers,
    })),
  );
  const oom = await buildOomWatcher(deps);
  return { collector, imageGc, parts: [collector, imageGc, rotation, oom] };
}

async function buildOomWatcher({ base, edge, cluster, store, life }: UpkeepDeps): Promise<OomWatcher> {
  const { observer, cgroupDriver } = edge;
  const layout = await detectCgroups();
  const kubepods = kubepodsName(parseCgroupName(base.config.cgroupRoot || '/', cgroupDriver));
  const watcher = new OomWatcher(
    {
      pods: {
        pod: (uid) => store.get(uid),
        containerName: (uid, id) => observer.cache.get(uid)?.containers.find((c) => c.id === id)?.name,
      },
      events: cluster.events,
      onContainerOom: ({ podUid }) => life().workers.wake(podUid),
      clock: base.clock,
      log: base.log.child({ component: 'oom' }),
    },
    {
      kmsgPath: '/dev/kmsg',
      mayBeClosed: base.gates.enabled('KubeletInUserNamespace'),
      memoryEventsPath:
        layout.version === 2 ? join(layout.mountPoint, cgroupPath(kubepods, cgroupDriver), 'memory.events') : undefined,
    },
  );
  observer.onOom(() => watcher.lookSoon());
  observer.cache.onChange((_, events) => watcher.observed(events));
  return watcher;
}

function buildCollector({ base, edge, hooks, life, sourcesReady }: UpkeepDeps): GarbageCollector {
  const { clock, config, flags } = base;
  const ask =
    (question: typeof contentMayBeRemoved) =>
    (uid: PodUid): boolean =>
      question(life().workers.stateOf(uid), life().housekeeping.synced);
  return new GarbageCollector(
    {
      clock,
      log: base.log.child({ component: 'garbage' }),
      runtime: criGarbage(edge.cri.runtime),
      pods: { contentRemovable: ask(contentMayBeRemoved), runtimeRemovable: ask(runtimeMayBeRemoved) },
      logFiles: {
        removeLogs: removeContainerLogs,
        linkName: (of) => logLinkName(of.podName, of.namespace, of.container, of.containerId),
        linkOwner: containerIdOf,
      },
      postStop: (uid, container, id) => hooks.postStop(uid, container, id),
      sourcesReady,
      quiet: (signal) => life().quiet(signal),
    },
    {
      policy: {
        minAgeMs: flags.minimumContainerTtlDurationMs,
        maxPerContainer: flags.maximumDeadContainersPerContainer,
        maxContainers: flags.maximumDeadContainers,
      },
      everyMs: CONTAINER_GC_MS,
      podLogs: config.podLogsDir,
      containerLogs: CONTAINER_LOGS,
    },
  );
}
