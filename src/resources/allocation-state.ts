// The allocations of all pods, kept in `<root>/allocated_pods_state` in upstream's format: a pod that was admitted keeps
// what it was granted over a restart of the agent.
import { readFile } from 'node:fs/promises';
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod, type ResourceRequirements } from '../core/pod.ts';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import { errnoOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { allocationOf, differs, withAllocation, type Allocation } from './allocation.ts';

type Entries = Record<
  string,
  { ContainerResources?: Record<string, ResourceRequirements>; PodLevelResources?: ResourceRequirements }
>;

export class AllocationState {
  readonly #log: Logger;
  readonly #file: string;
  readonly #pods = new Map<string, Allocation>();
  #dirty = false;
  #writing: Promise<void> | undefined;

  constructor(deps: { readonly log: Logger }, options: { readonly file: string }) {
    this.#log = deps.log;
    this.#file = options.file;
  }

  /** Reads what an earlier run left. A file that cannot be understood counts as absent. */
  async load(): Promise<void> {
    try {
      const entries = parseAllocations(await readFile(this.#file, 'utf8'));
      for (const [uid, { ContainerResources = {}, PodLevelResources }] of Object.entries(entries))
        this.#pods.set(uid, {
          containers: ContainerResources,
          ...(PodLevelResources !== undefined && { pod: PodLevelResources }),
        });
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT')
        this.#log.warn('record of granted resources not readable', { file: this.#file, err });
    }
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
    this.#changed();
  }

  retain(alive: ReadonlySet<string>): void {
    const gone = [...this.#pods.keys()].filter((uid) => !alive.has(uid));
    for (const uid of gone) this.#pods.delete(uid);
    if (gone.length > 0) this.#changed();
  }

  /** Resolves when everything granted so far is on disk, or was given up with an error in the log. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  /** Changes while a write is under way go into one more write. */
  #changed(): void {
    this.#dirty = true;
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
  }

  async #write(): Promise<void> {
    while (this.#dirty) {
      this.#dirty = false;
      try {
        await writeFileAtomic(this.#file, formatAllocations(this.#pods), 0o600);
      } catch (err) {
        this.#log.error('record of granted resources not written', { file: this.#file, err });
      }
    }
  }
}

export function formatAllocations(pods: ReadonlyMap<string, Allocation>): string {
  const entries: Entries = {};
  for (const [uid, { containers, pod }] of pods)
    entries[uid] = { ContainerResources: containers, ...(pod !== undefined && { PodLevelResources: pod }) };
  const data = goJson({ entries });
  return goJson({ data, checksum: checksum(data) });
}

export function parseAllocations(text: string): Entries {
  const { data, checksum: sum } = JSON.parse(text) as { data?: unknown; checksum?: unknown };
  if (typeof data !== 'string' || sum !== checksum(data)) throw new Error('checksum does not match');
  return (JSON.parse(data) as { entries?: Entries }).entries ?? {};
}

const goJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** FNV-1a over the data as upstream prints it. */
function checksum(data: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`(string)${data}`)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
