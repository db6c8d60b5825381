// What the page asks the rest of the kubelet. Everything is read when somebody looks, nothing is kept here.
import type { PodUid } from '../core/ids.ts';
import type { KubeEvent, Node } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { Image } from '../cri/gen/cri.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { SourceProblem } from '../sources/problem.ts';
import type { NodeFigures, Summary } from '../stats/summary-types.ts';
import type { Waterfall } from '../trace/waterfall.ts';
import type { Why } from '../why/facts.ts';
import type { WorkerView as WorkerFacts } from '../pods/pod-workers.ts';
import type { PullView as PullFacts } from '../images/pull-progress.ts';
import type { NodeFacts, ProbeView, SignalView } from './model.ts';
import type { PageRecords } from './records.ts';

export type LogSource = {
  /** Lines with their stamps, of one container; ends when nothing more can come, or with the signal. */
  read(
    pod: Pod,
    container: string,
    options: { readonly follow: boolean; readonly previous: boolean; readonly tailLines: number },
    signal: AbortSignal,
  ): AsyncIterable<Buffer>;
};

export type PagePorts = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly records: PageRecords;
  readonly facts: () => Omit<NodeFacts, 'write' | 'cpus' | 'memoryBytes'>;
  readonly pods: {
    /** Without mirror pods, each with its latest status. */
    all(): readonly Pod[];
    byName(namespace: string, name: string): Pod | undefined;
    readonly max: number;
  };
  readonly pod: {
    observed(uid: PodUid): PodSnapshot | undefined;
    why(pod: Pod): Why;
    events(uid: PodUid): readonly KubeEvent[];
    probes(uid: PodUid): readonly Pick<ProbeView, 'container' | 'type' | 'runs'>[];
    /** Names of volumes that are mounted. */
    mounts(uid: PodUid): Iterable<string>;
    /** What the others wait for, one clause each: `volume "name": …`. */
    volumeComplaints(uid: PodUid): readonly string[];
    waterfalls(): readonly Waterfall[];
    /** Ends its back-offs: what waits for its next try is tried at once. */
    retry(pod: Pod): void;
    cgroup(uid: PodUid, signal: AbortSignal): Promise<readonly CgroupValues[]>;
    readonly logs: LogSource;
  };
  readonly workers: () => readonly WorkerFacts[];
  readonly problems: () => readonly SourceProblem[];
  readonly node: {
    node(): Node | undefined;
    runtimeErrors(): readonly string[];
    signals(): readonly SignalView[];
    figures(signal: AbortSignal): Promise<NodeFigures>;
    summary(signal: AbortSignal): Promise<Summary>;
  };
  readonly images: {
    list(): readonly Image[];
    /** Ids in the order in which collection would take them. */
    collectOrder(): readonly string[];
    readonly thresholds: () => { readonly highPercent: number; readonly lowPercent: number };
    pulls(): readonly PullFacts[];
  };
};

export type CgroupValues = { readonly name: string; readonly values: Readonly<Record<string, string>> };
