// The allocations of all pods, kept in `<root>/allocated_pods_state` in upstream's format: a pod that was admitted keeps
// what it was granted over a restart of the agent.
import { formatState, parseState } from '../core/go-json.ts';
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod, type ResourceRequirements } from '../core/pod.ts';
import { LatestFile, type LatestFileDeps } from '../lib/latest-file.ts';
import { allocationOf, differs, withAllocation, type Allocation } from './allocation.ts';

type Entry = {
  readonly ContainerResources?: Readonly<Record<string, ResourceRequirements>>;
  readonly PodLevelResources?: ResourceRequirements;
};

export class AllocationState {
  readonly #file: LatestFile;
  readonly #pods = new Map<string, Allocation>();

  constructor(deps: LatestFileDeps, options: { readonly file: string }) {
    this.#file = new LatestFile(deps, { path: options.file, content: () => formatAllocations(this.#pods) });
  }

  /** Reads what an earlier run left. */
  load(): Promise<void> {
    return this.#file.load((text) => {
      for (const [uid, { ContainerResources = {}, PodLevelResources }] of Object.entries(parseState<Entry>(text)))
        this.#pods.set(uid, {
          containers: ContainerResources,
          ...(PodLevelResources !== undefined && { pod: PodLevelResources }),
        });
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

  /** Resolves when everything granted so far is on disk, or was given up. */
  flush(): Promise<void> {
    return this.#file.flush();
  }
}

export function formatAllocations(pods: ReadonlyMap<string, Allocation>): string {
  const entries: Record<string, Entry> = {};
  for (const [uid, { containers, pod }] of pods)
    entries[uid] = { ContainerResources: containers, ...(pod !== undefined && { PodLevelResources: pod }) };
  return formatState(entries);
}
