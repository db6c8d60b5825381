// Bytes of the files that the kubelet writes into the volumes of each pod. The volumes of a pod are set up side by side and
// stay on disk or in memory, so they share one bound.
import { POD_FILES_BYTES } from '../core/bounds.ts';
import { overBudget } from '../lib/budget.ts';

/** Counted for every file and source on top of the bytes, so that empty ones are not free. */
const FILE_BYTES = 512;
const WHAT = 'files of the ConfigMap, Secret, downwardAPI and projected volumes of the pod';

export interface FileBudget {
  /** Before the bytes of a file are made. Throws when the pod's bound is passed. */
  take(bytes: number, path: string): void;
}

type Taken = { total: number; readonly byVolume: Map<string, number> };

export class FileBudgets {
  readonly #limit: number;
  readonly #pods = new Map<string, Taken>();

  constructor(limit = POD_FILES_BYTES) {
    this.#limit = limit;
  }

  /** For a new set of files of one volume: it replaces what the volume had. */
  begin(uid: string, volume: string): FileBudget {
    this.release(uid, volume);
    const taken = this.#pods.get(uid) ?? { total: 0, byVolume: new Map<string, number>() };
    this.#pods.set(uid, taken);
    taken.byVolume.set(volume, 0);
    return {
      take: (bytes, path) => {
        const more = FILE_BYTES + bytes;
        taken.total += more;
        taken.byVolume.set(volume, (taken.byVolume.get(volume) ?? 0) + more);
        if (taken.total > this.#limit) throw overBudget(WHAT, this.#limit, `${path} of volume ${volume}`);
      },
    };
  }

  /** The volume is gone. Files that were too much stay counted until then or the next try: the others fail at once. */
  release(uid: string, volume: string): void {
    const taken = this.#pods.get(uid);
    if (taken === undefined) return;
    taken.total -= taken.byVolume.get(volume) ?? 0;
    taken.byVolume.delete(volume);
    if (taken.byVolume.size === 0) this.#pods.delete(uid);
  }

  /** Pods of which something is counted. */
  get size(): number {
    return this.#pods.size;
  }
}
