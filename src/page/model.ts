// What the node page and the command line show, as JSON: the answers of /page/api/*. Types only. Times are wall
// milliseconds, sizes bytes, CPU is in cores. What could not be read is absent (`null` inside a series).

/** One sentence that says why something is not as it should be, what shows it, and what to do. */
export type WhyView = {
  readonly sentence: string;
  readonly evidence: readonly string[];
  readonly fix?: string;
};

export type Tone = 'ok' | 'busy' | 'warn' | 'bad' | 'idle';

// ---- GET now ----

export type NowView = {
  readonly atMs: number;
  readonly node: NodeFacts;
  readonly ready: { readonly ready: boolean; readonly why: WhyView };
  readonly conditions: readonly ConditionView[];
  readonly signals: readonly SignalView[];
  readonly use: NodeUse;
  readonly pods: PodCounts;
  readonly agent: AgentView;
  readonly latency: { readonly runtime: LatencyView; readonly api?: LatencyView };
  readonly pulls: readonly PullView[];
  /** How many manifests have problems; the workers view lists them. */
  readonly problems: number;
  /** Slowest starts of late, longest first. */
  readonly slowest: readonly { readonly namespace: string; readonly name: string; readonly tookMs: number }[];
  readonly history: HistoryView;
};

export type NodeFacts = {
  readonly name: string;
  readonly version: string;
  readonly runtime: string;
  readonly kernel?: string;
  readonly os?: string;
  readonly architecture: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Whether it belongs to a cluster or runs manifests of its own. */
  readonly standalone: boolean;
  readonly startedAtMs: number;
  /** Whether this page may change anything (exec). */
  readonly write: boolean;
};

export type ConditionView = {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly sinceMs?: number;
  readonly tone: Tone;
};

/** One eviction threshold against what was measured last. */
export type SignalView = {
  readonly signal: string;
  readonly available: number;
  readonly capacity: number;
  readonly threshold: number;
  readonly unit: 'bytes' | 'count';
  readonly hard: boolean;
  readonly met: boolean;
};

export type PsiView = { readonly some: number; readonly full: number };

export type NodeUse = {
  readonly cpuCores?: number;
  readonly memoryWorkingSetBytes?: number;
  readonly memoryAvailableBytes?: number;
  readonly swapBytes?: number;
  readonly processes?: number;
  readonly disks: readonly DiskView[];
  /** Share of the last ten seconds, in percent, in which something waited. */
  readonly psi: { readonly cpu?: PsiView; readonly memory?: PsiView; readonly io?: PsiView };
  readonly networkRxBytes?: number;
  readonly networkTxBytes?: number;
};

export type DiskView = {
  readonly name: string;
  readonly usedBytes: number;
  readonly capacityBytes: number;
  readonly inodesUsed?: number;
  readonly inodes?: number;
};

export type PodCounts = {
  readonly total: number;
  readonly ready: number;
  readonly starting: number;
  readonly notReady: number;
  readonly stopping: number;
  readonly ended: number;
  readonly max: number;
};

export type AgentView = {
  readonly pid: number;
  readonly cpuCores?: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  /** Share of time the event loop was busy, 0 to 1. */
  readonly busy?: number;
  /** Of the last seconds, measured while a page is open. */
  readonly delayMs?: { readonly p50: number; readonly p99: number; readonly max: number };
  readonly uptimeMs: number;
};

export type LatencyView = {
  /** Of the last calls (at most some hundred). */
  readonly calls: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly failed: number;
  readonly inFlight: number;
};

/** The last hour. Every series is oldest first, ends at `endMs` and has a value per `everyMs`. */
export type HistoryView = {
  readonly endMs: number;
  readonly everyMs: number;
  readonly series: Readonly<Record<SeriesName, readonly (number | null)[]>>;
};

export type SeriesName =
  | 'cpu'
  | 'memory'
  | 'disk'
  | 'psiCpu'
  | 'psiMemory'
  | 'psiIo'
  | 'agentCpu'
  | 'agentMemory'
  | 'agentBusy'
  | 'runtimeMs'
  | 'apiMs'
  | 'pods';

// ---- GET pods ----

export type PodsView = { readonly atMs: number; readonly pods: readonly PodRow[] };

export type PodRow = {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** As `kubectl get pods` says it: Running, CrashLoopBackOff, ContainerCreating, Completed … */
  readonly state: string;
  readonly tone: Tone;
  readonly readyContainers: number;
  readonly containers: number;
  /** Absent where nothing is wrong. */
  readonly why?: WhyView;
  readonly restarts: number;
  /** Of the last restart: `OOMKilled (137)`. */
  readonly lastExit?: string;
  readonly lastExitMs?: number;
  readonly createdAtMs?: number;
  readonly cpuCores?: number;
  readonly cpuLimitCores?: number;
  readonly memoryBytes?: number;
  readonly memoryLimitBytes?: number;
  readonly qos?: string;
  readonly source: string;
  readonly ip?: string;
};

// ---- GET pods/{namespace}/{name} ----

export type PodView = {
  readonly atMs: number;
  readonly row: PodRow;
  readonly conditions: readonly ConditionView[];
  /** The latest start and stop; each beside the one of the same kind before it, if it is remembered. */
  readonly waterfalls: readonly { readonly now: WaterfallView; readonly before?: WaterfallView }[];
  readonly containers: readonly ContainerView[];
  readonly probes: readonly ProbeView[];
  readonly volumes: readonly VolumeView[];
  readonly events: readonly EventView[];
  /** What the spec says beside what runs; where they differ, first. */
  readonly compared: readonly ComparedView[];
  readonly cgroup: readonly { readonly name: string; readonly values: Readonly<Record<string, string>> }[];
  /** The pod's spec as YAML, without what may be a secret. */
  readonly spec: string;
  readonly worker?: WorkerView;
};

export type ComparedView = {
  readonly what: string;
  readonly wanted: string;
  readonly running: string;
  readonly same: boolean;
};

export type WaterfallView = {
  readonly kind: 'start' | 'stop';
  readonly startedAtMs: number;
  /** Absent while it is under way. */
  readonly tookMs?: number;
  readonly spans: readonly {
    readonly name: string;
    readonly of?: string;
    readonly fromMs: number;
    /** Absent while it lasts. */
    readonly toMs?: number;
    readonly error?: string;
  }[];
};

export type ContainerView = {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'main' | 'ephemeral';
  readonly image: string;
  readonly imageId?: string;
  readonly id?: string;
  readonly state: string;
  readonly tone: Tone;
  readonly message?: string;
  readonly ready: boolean;
  readonly restarts: number;
  readonly startedAtMs?: number;
  readonly exit?: string;
  readonly lastExit?: string;
  readonly lastExitMs?: number;
  readonly cpuCores?: number;
  readonly cpuLimitCores?: number;
  readonly memoryBytes?: number;
  readonly memoryLimitBytes?: number;
  readonly hasLogs: boolean;
};

export type ProbeView = {
  readonly container: string;
  readonly type: 'startup' | 'readiness' | 'liveness';
  readonly what: string;
  readonly periodSeconds: number;
  readonly runs: readonly {
    readonly atMs: number;
    readonly tookMs: number;
    readonly result: 'success' | 'failure' | 'unknown';
    readonly output: string;
  }[];
};

export type VolumeView = {
  readonly name: string;
  readonly kind: string;
  readonly tone: Tone;
  /** What is waited for, or the last error. */
  readonly waitsFor?: string;
  readonly usedBytes?: number;
  readonly capacityBytes?: number;
};

export type EventView = {
  readonly atMs: number;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly about?: string;
};

// ---- GET images ----

export type ImagesView = {
  readonly atMs: number;
  readonly disk?: {
    readonly usedBytes: number;
    readonly capacityBytes: number;
    /** Collection begins and ends there, in percent. */
    readonly highPercent: number;
    readonly lowPercent: number;
  };
  readonly pulls: readonly PullView[];
  /** Largest first. */
  readonly images: readonly ImageView[];
};

export type ImageView = {
  readonly id: string;
  readonly names: readonly string[];
  readonly sizeBytes: number;
  readonly pinned: boolean;
  /** `namespace/name` of pods that use it. */
  readonly usedBy: readonly string[];
  /** 1 is what image collection would take first; absent where it would not be taken. */
  readonly collectOrder?: number;
};

/** A pull that waits for its turn or is under way. */
export type PullView = {
  readonly image: string;
  readonly pods: readonly string[];
  readonly startedAtMs: number;
  readonly state: 'queued' | 'pulling';
  /** While queued: how many pulls are before it. */
  readonly ahead?: number;
  readonly doneBytes?: number;
  readonly totalBytes?: number;
  readonly bytesPerSecond?: number;
  readonly leftMs?: number;
  readonly layers?: readonly {
    readonly name: string;
    readonly doneBytes: number;
    readonly totalBytes?: number;
    readonly state?: string;
  }[];
};

// ---- GET timeline ----

export type TimelineView = { readonly atMs: number; readonly entries: readonly TimelineEntry[] };

export type TimelineKind = 'start' | 'exit' | 'oom' | 'probe' | 'eviction' | 'pressure' | 'agent' | 'runtime' | 'other';

export type TimelineEntry = {
  /** Grows; entries are told apart by it. */
  readonly id: number;
  readonly atMs: number;
  readonly kind: TimelineKind;
  readonly tone: Tone;
  /** `namespace/name`; absent when it is about the node. */
  readonly pod?: string;
  readonly container?: string;
  readonly text: string;
};

// ---- GET workers ----

export type WorkersView = {
  readonly atMs: number;
  readonly workers: readonly WorkerView[];
  readonly calls: readonly CallView[];
  readonly problems: readonly ProblemView[];
};

export type WorkerView = {
  readonly uid: string;
  readonly pod: string;
  readonly phase: 'syncing' | 'terminating' | 'terminated' | 'finished';
  /** Whether a step is under way now. */
  readonly busy: boolean;
  readonly sinceMs?: number;
  /** The step's present piece: `volumes`, `image nginx:1` … */
  readonly waitsFor?: string;
  readonly waitsSinceMs?: number;
  /** When it looks again by itself. */
  readonly nextMs?: number;
  readonly lastError?: string;
};

/** A call that has not been answered yet. */
export type CallView = {
  readonly to: 'runtime' | 'api';
  readonly call: string;
  readonly sinceMs: number;
};

export type ProblemView = {
  readonly source: string;
  readonly where: string;
  readonly severity: 'error' | 'warning';
  readonly line?: number;
  readonly column?: number;
  readonly field?: string;
  readonly message: string;
  readonly since: string;
};
