// From the parts of the kubelet to what the page asks for.
import { KubeletError } from '../lib/errors.ts';
import type { PodUid } from '../core/ids.ts';
import type { KubeEvent, Node } from '../core/node.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import type { ObservedState, PodSnapshot } from '../core/snapshot.ts';
import type { Image } from '../cri/gen/cri.ts';
import type { CgroupLayout } from '../host/cgroups/layout.ts';
import type { PullView as PullFacts } from '../images/pull-progress.ts';
import { processStartMs, type Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { WorkerView as WorkerFacts } from '../pods/pod-workers.ts';
import type { SourceProblem } from '../sources/problem.ts';
import type { NodeFigures, Summary } from '../stats/summary-types.ts';
import type { Waterfall } from '../trace/waterfall.ts';
import type { Why } from '../why/facts.ts';
import { cgroupValues, type PodCgroupPaths } from './cgroup-values.ts';
import type { ProbeView, SignalView } from './model.ts';
import type { LogSource, PagePorts } from './ports.ts';
import { isReady } from './pod-row.ts';
import type { PageRecords } from './records.ts';

type ChosenLog = { readonly ok: true; readonly containerId: string } | { readonly ok: false; readonly why: string };

export type PageParts = {
  readonly base: { readonly clock: Clock; readonly log: Logger; readonly records: PageRecords };
  readonly cluster: {
    node(): Node | undefined;
    nodeIps(): readonly string[];
    readonly api?: unknown;
    readonly events: { readonly ring: { ringOf(uid: string): readonly KubeEvent[] } };
  };
  readonly runtime: {
    readonly version: { readonly name: string; readonly version: string };
    readonly health: { state(): { readonly runtimeErrors: readonly string[] } };
    readonly cache: { get(uid: PodUid): PodSnapshot | undefined; stateOf(id: string): ObservedState | undefined };
  };
  readonly pods: { all(): readonly Pod[]; byName(namespace: string, name: string): Pod | undefined };
  readonly explainer: { of(pod: Pod): Why };
  readonly workers: {
    uids(): readonly PodUid[];
    view(uid: PodUid): WorkerFacts | undefined;
    wake(uid: PodUid): void;
  };
  readonly podRuntime: { resetBackoff(pod: Pod): void };
  readonly probes: { history(uid: PodUid): readonly Pick<ProbeView, 'container' | 'type' | 'runs'>[] };
  readonly volumes: {
    mountsOf(uid: string): ReadonlyMap<string, unknown>;
    complaintsOf(uid: string): readonly string[];
  };
  readonly tracer: { all(): readonly Waterfall[] };
  readonly problems: { problems(): readonly SourceProblem[] };
  readonly stats: {
    readonly provider: {
      node(signal: AbortSignal): Promise<NodeFigures>;
      summary(options: { readonly onlyCpuAndMemory: boolean }, signal: AbortSignal): Promise<Summary>;
    };
    readonly census: () => Promise<ReadonlyMap<PodUid, PodCgroupPaths>>;
  };
  readonly eviction: { readings(): readonly SignalView[] };
  readonly images: { list(): readonly Image[]; collectOrder(): readonly string[] };
  readonly puller: { pulls(): readonly PullFacts[]; forgetPod(uid: PodUid): void };
  readonly logs: {
    readonly choose: (pod: Pod, container: string, previous: boolean) => ChosenLog;
    readonly pathOf: (containerId: string, signal: AbortSignal) => Promise<string>;
    readonly read: (
      path: string,
      options: {
        readonly timestamps: boolean;
        readonly follow: boolean;
        readonly tailLines: number;
        readonly clock: Clock;
      },
      isRunning: () => boolean,
      signal: AbortSignal,
    ) => AsyncIterable<Buffer>;
  };
};

export type PageFacts = {
  readonly nodeName: string;
  readonly version: string;
  readonly architecture: string;
  readonly maxPods: number;
  readonly cgroups: CgroupLayout;
  /** As it is now. */
  readonly config: () => {
    readonly imageGCHighThresholdPercent: number;
    readonly imageGCLowThresholdPercent: number;
  };
};

export function pagePorts(parts: PageParts, facts: PageFacts): PagePorts {
  const { base, cluster, runtime, pods, workers, stats, images } = parts;
  base.records.history.with(() => ({ pods: pods.all().filter(isReady).length }));
  return {
    clock: base.clock,
    log: base.log.child({ component: 'node-page' }),
    records: base.records,
    facts: () => nodeFacts(parts, facts),
    pods: { all: () => pods.all(), byName: (namespace, name) => pods.byName(namespace, name), max: facts.maxPods },
    pod: podPorts(parts, facts),
    workers: () => workers.uids().flatMap((uid) => workers.view(uid) ?? []),
    problems: () => parts.problems.problems(),
    node: {
      node: () => cluster.node(),
      runtimeErrors: () => runtime.health.state().runtimeErrors,
      signals: () => parts.eviction.readings(),
      figures: (signal) => stats.provider.node(signal),
      summary: (signal) => stats.provider.summary({ onlyCpuAndMemory: true }, signal),
    },
    images: {
      list: () => images.list(),
      collectOrder: () => images.collectOrder(),
      thresholds: () => {
        const { imageGCHighThresholdPercent: highPercent, imageGCLowThresholdPercent: lowPercent } = facts.config();
        return { highPercent, lowPercent };
      },
      pulls: () => parts.puller.pulls(),
    },
  };
}

function nodeFacts({ base, cluster, runtime }: PageParts, facts: PageFacts): ReturnType<PagePorts['facts']> {
  const { nodeInfo } = cluster.node()?.status ?? {};
  return {
    name: facts.nodeName,
    version: facts.version,
    runtime: `${runtime.version.name} ${runtime.version.version}`,
    architecture: facts.architecture,
    standalone: cluster.api === undefined,
    startedAtMs: processStartMs(base.clock),
    ...(nodeInfo === undefined ? {} : { kernel: nodeInfo.kernelVersion, os: nodeInfo.osImage }),
  };
}

function podPorts(parts: PageParts, { cgroups }: PageFacts): PagePorts['pod'] {
  const { runtime, cluster, explainer, probes, volumes, stats, tracer } = parts;
  const { cache } = runtime;
  return {
    observed: (uid) => cache.get(uid),
    why: (pod) => explainer.of(pod),
    events: (uid) => cluster.events.ring.ringOf(uid),
    probes: (uid) => probes.history(uid),
    mounts: (uid) => volumes.mountsOf(uid).keys(),
    volumeComplaints: (uid) => volumes.complaintsOf(uid),
    waterfalls: () => tracer.all(),
    retry: (pod) => {
      parts.podRuntime.resetBackoff(pod);
      parts.puller.forgetPod(uidOf(pod));
      parts.workers.wake(uidOf(pod));
    },
    cgroup: async (uid) => {
      const found = (await stats.census()).get(uid);
      const nameOf = (id: string): string | undefined => cache.get(uid)?.containers.find((c) => c.id === id)?.name;
      return found === undefined ? [] : cgroupValues(cgroups, found, nameOf);
    },
    logs: logSource(parts),
  };
}

const logSource = ({ base, runtime, logs }: PageParts): LogSource => ({
  read: async function* (pod, container, { follow, previous, tailLines }, signal) {
    const chosen = logs.choose(pod, container, previous);
    if (!chosen.ok) throw new KubeletError('notFound', chosen.why);
    const path = await logs.pathOf(chosen.containerId, signal);
    const isRunning = (): boolean => runtime.cache.stateOf(chosen.containerId) === 'running';
    yield* logs.read(path, { timestamps: true, follow, tailLines, clock: base.clock }, isRunning, signal);
  },
});
