// The allocations of all pods, kept in `<root>/allocated_pods_state` in upstream's format: a pod that was admitted keeps
// what it was granted over a restart of the agent.
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import { formatPodResourceState, parsePodResourceState } from '../core/pod-resource-state.ts';
import { LatestFile, type LatestFileDeps } from '../lib/latest-file.ts';
import { allocationOf, differs, withAllocation, type Allocation } from './allocation.ts';

export class AllocationState {
  readonly #deps: LatestFileDeps;
  readonly #path: string;
  readonly #file: LatestFile;
  readonly #pods = new Map<string, Allocation>();

  constructor(deps: LatestFileDeps, options: { readonly file: string }) {
    this.#deps = deps;
    this.#path = options.file;
    this.#file = new LatestFile(deps, { path: options.file, content: () => formatPodResourceState(this.#pods) });
  }

  /** Reads what an earlier run left. */
  load(): Promise<void> {
    return this.#file.load((text) => {
      const { pods, damaged } = parsePodResourceState(text);
      for (const [uid, allocation] of pods) this.#pods.set(uid, allocation);
      for (const entry of damaged) this.#deps.log.warn('state entry left out', { path: this.#path, ...entry });
    });
  }

  /** The pod as it was granted; as it is where nothing was granted yet. */
  allocated(pod: Pod): Pod {
    return withAllocation(pod, this.#pods.get(uidOf(pod)));
  }

  /** Whether the pod asks for something else than it was granted. */
  isResized(pod: Pod): boolean {
    return differs(pod, this.#pods.get(uidOf(pod)));
  }

  has(uid: PodUid): boolean {
    return this.#pods.has(uid);
  }

  /** Grants what the pod asks for. */
  grant(pod: Pod): void {
    this.#pods.set(uidOf(pod), allocationOf(pod));
    this.#file.changed();
  }

  retain(alive: ReadonlySet<string>): void {
    const gone = [...this.#pods.keys()].filter((uid) => !alive.has(uid));
    for (const uid of gone) this.#pods.delete(uid);
    if (gone.length > 0) this.#file.changed();
  }

  /** Writes the file one last time. */
  close(): Promise<void> {
    return this.#file.close();
  }
}
