// The summary as clients know it. Field order is the order on the wire; a field that is undefined is left out.
import { apiTime } from '../core/time.ts';

/** A moment that is exact inside and whole seconds on the wire. */
export class Moment {
  readonly ms: number;

  constructor(ms: number) {
    this.ms = ms;
  }

  toJSON(): string {
    return apiTime(this.ms);
  }
}

type Maybe<T> = T | undefined;

export type PsiLine = {
  readonly total: number;
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
};
export type Psi = { readonly full: PsiLine; readonly some: PsiLine };

export type CpuFigures = {
  readonly time: Moment;
  readonly usageNanoCores: Maybe<number>;
  readonly usageCoreNanoSeconds: Maybe<number>;
  readonly psi: Maybe<Psi>;
};

export type MemoryFigures = {
  readonly time: Moment;
  readonly availableBytes: Maybe<number>;
  readonly usageBytes: Maybe<number>;
  readonly workingSetBytes: Maybe<number>;
  readonly rssBytes: Maybe<number>;
  readonly pageFaults: Maybe<number>;
  readonly majorPageFaults: Maybe<number>;
  readonly psi: Maybe<Psi>;
};

export type IoFigures = { readonly time: Moment; readonly psi: Maybe<Psi> };

export type SwapFigures = {
  readonly time: Moment;
  readonly swapAvailableBytes: Maybe<number>;
  readonly swapUsageBytes: Maybe<number>;
};

export type InterfaceFigures = {
  readonly name: string;
  readonly rxBytes?: number;
  readonly rxErrors?: number;
  readonly txBytes?: number;
  readonly txErrors?: number;
};
export type NetworkFigures = { readonly time: Moment } & InterfaceFigures & {
    readonly interfaces: readonly InterfaceFigures[];
  };

export type FsFigures = {
  readonly time: Moment;
  readonly availableBytes: Maybe<number>;
  readonly capacityBytes: Maybe<number>;
  readonly usedBytes: Maybe<number>;
  readonly inodesFree: Maybe<number>;
  readonly inodes: Maybe<number>;
  readonly inodesUsed: Maybe<number>;
};

export type VolumeFigures = FsFigures & {
  readonly name: string;
  readonly pvcRef?: { readonly name: string; readonly namespace: string };
  readonly volumeHealthStats?: { readonly abnormal: boolean };
};

export type ContainerFigures = {
  readonly name: string;
  readonly startTime: Moment;
  readonly cpu: Maybe<CpuFigures>;
  readonly memory: Maybe<MemoryFigures>;
  readonly io: Maybe<IoFigures>;
  readonly rootfs?: Maybe<FsFigures>;
  readonly logs?: Maybe<FsFigures>;
  readonly swap: Maybe<SwapFigures>;
};

export type PodFigures = {
  readonly podRef: { readonly name: string; readonly namespace: string; readonly uid: string };
  readonly startTime: Moment;
  readonly containers: readonly ContainerFigures[];
  readonly cpu: Maybe<CpuFigures>;
  readonly memory: Maybe<MemoryFigures>;
  readonly io: Maybe<IoFigures>;
  readonly network?: Maybe<NetworkFigures>;
  readonly volume?: Maybe<readonly VolumeFigures[]>;
  readonly 'ephemeral-storage'?: Maybe<FsFigures>;
  readonly process_stats?: Maybe<{ readonly process_count: number }>;
  readonly swap: Maybe<SwapFigures>;
};

export type NodeFigures = {
  readonly nodeName: string;
  readonly systemContainers: readonly ContainerFigures[];
  readonly startTime: Moment;
  readonly cpu: Maybe<CpuFigures>;
  readonly memory: Maybe<MemoryFigures>;
  readonly io?: Maybe<IoFigures>;
  readonly network?: Maybe<NetworkFigures>;
  readonly fs?: Maybe<FsFigures>;
  readonly runtime?: Maybe<{ readonly imageFs: Maybe<FsFigures>; readonly containerFs: Maybe<FsFigures> }>;
  readonly rlimit?: Maybe<{ readonly time: Moment; readonly maxpid: number; readonly curproc: number }>;
  readonly swap: Maybe<SwapFigures>;
};

export type Summary = { readonly node: NodeFigures; readonly pods: readonly PodFigures[] };

/** The bytes of the answer: one space per level. */
export const summaryJson = (summary: Summary): string => JSON.stringify(summary, undefined, 1);
