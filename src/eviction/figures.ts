// What eviction needs to know about the node and its pods; the statistics' summary fits.

type Maybe<T> = T | undefined;
type Moment = { readonly ms: number };

export type MemoryFigure = {
  readonly time: Moment;
  readonly availableBytes: Maybe<number>;
  readonly workingSetBytes: Maybe<number>;
  readonly usageBytes?: Maybe<number>;
};

export type FsFigure = {
  readonly time: Moment;
  readonly availableBytes: Maybe<number>;
  readonly capacityBytes: Maybe<number>;
  readonly usedBytes: Maybe<number>;
  readonly inodesFree: Maybe<number>;
  readonly inodes: Maybe<number>;
  readonly inodesUsed: Maybe<number>;
};

export type ContainerFigures = {
  readonly name: string;
  readonly memory: Maybe<MemoryFigure>;
  readonly rootfs?: Maybe<FsFigure>;
  readonly logs?: Maybe<FsFigure>;
};

export type PodFigures = {
  readonly podRef: { readonly uid: string };
  readonly containers: readonly ContainerFigures[];
  readonly memory: Maybe<MemoryFigure>;
  readonly volume?: Maybe<readonly (FsFigure & { readonly name: string })[]>;
  /** All that the pod has on the node: layers, logs, volumes, its hosts file and termination messages. */
  readonly 'ephemeral-storage'?: Maybe<FsFigure>;
  readonly process_stats?: Maybe<{ readonly process_count: number }>;
};

export type NodeFigures = {
  readonly systemContainers: readonly ContainerFigures[];
  readonly memory: Maybe<MemoryFigure>;
  readonly fs?: Maybe<FsFigure>;
  readonly runtime?: Maybe<{ readonly imageFs: Maybe<FsFigure>; readonly containerFs: Maybe<FsFigure> }>;
  readonly rlimit?: Maybe<{ readonly time: Moment; readonly maxpid: number; readonly curproc: number }>;
};

/**
 * Where the runtime keeps images and writable layers: all on the kubelet's filesystem, both on one of their own, or on two
 * different ones.
 */
export type DiskLayout = 'shared' | 'dedicated' | 'split';
