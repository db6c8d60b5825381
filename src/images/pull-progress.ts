// A pull as people see it: what waits or is being pulled for whom, how far it is, how fast, how long it will take. Pure.
import type { PodUid } from '../core/ids.ts';

/** How the figures were found. `layers`: told by the runtime. `size`: grown disk usage against the manifest's size.
 * `disk`: grown disk usage only, the size is not known. */
export type ProgressSource = 'layers' | 'size' | 'disk';

export type LayerProgress = {
  readonly digest: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
  readonly done: boolean;
};

export type PullProgress = {
  readonly source: ProgressSource;
  readonly doneBytes: number;
  /** Absent while nobody knows. */
  readonly totalBytes?: number;
  /** Of late; absent until there are two readings. */
  readonly bytesPerSecond?: number;
  readonly remainingSeconds?: number;
  readonly layers: readonly LayerProgress[];
};

/** One image that somebody waits for. */
export type PullView = {
  readonly podUid: PodUid;
  readonly namespace: string;
  readonly pod: string;
  /** As the pod's author wrote it. */
  readonly image: string;
  readonly phase: 'queued' | 'pulling';
  /** Since when the pod waits, wall time. */
  readonly sinceMs: number;
  /** Since when it is being pulled. */
  readonly pullingSinceMs?: number;
  /** While queued: how many are before it. */
  readonly ahead?: number;
  readonly progress?: PullProgress;
};
