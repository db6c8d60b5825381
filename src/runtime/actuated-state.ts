// What containers really run with: written when one starts or is resized, read by the planner and the status code, and
// kept in `<root>/actuated_pods_state` so that a resize in progress survives a restart of the agent.
import { readFile } from 'node:fs/promises';
import type { PodUid } from '../core/ids.ts';
import type { ResourceRequirements } from '../core/pod.ts';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import { errnoOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { fnv1a32 } from './container-hash.ts';
import { goJson } from './go-json.ts';
import type { Actuated } from './resize-plan.ts';

type Entries = Record<string, { ContainerResources?: Record<string, ResourceRequirements> }>;

const NOTHING: Actuated = new Map();

export class ActuatedState {
  readonly #log: Logger;
  readonly #file: string;
  readonly #pods = new Map<string, Map<string, ResourceRequirements>>();
  #dirty = false;
  #writing: Promise<void> | undefined;

  constructor(deps: { readonly log: Logger }, opts: { readonly file: string }) {
    this.#log = deps.log;
    this.#file = opts.file;
  }

  /** Reads what an earlier run left. A file that cannot be understood counts as absent. */
  async load(): Promise<void> {
    try {
      for (const [uid, entry] of Object.entries(parseState(await readFile(this.#file, 'utf8'))))
        this.#pods.set(uid, new Map(Object.entries(entry.ContainerResources ?? {})));
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT')
        this.#log.warn('record of resources in force not readable', { file: this.#file, err });
    }
  }

  of(uid: PodUid): Actuated {
    return this.#pods.get(uid) ?? NOTHING;
  }

  set(uid: PodUid, container: string, resources: ResourceRequirements): void {
    const pod = this.#pods.get(uid) ?? new Map<string, ResourceRequirements>();
    this.#pods.set(uid, pod.set(container, resources));
    this.#changed();
  }

  forget(uid: PodUid): void {
    if (this.#pods.delete(uid)) this.#changed();
  }

  /** Drops pods that are no longer there. */
  retain(alive: ReadonlySet<string>): void {
    const gone = [...this.#pods.keys()].filter((uid) => !alive.has(uid));
    for (const uid of gone) this.#pods.delete(uid);
    if (gone.length > 0) this.#changed();
  }

  /** Resolves when everything set so far is on disk, or was given up with a warning. */
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
        await writeFileAtomic(this.#file, formatState(this.#pods), 0o600);
      } catch (err) {
        this.#log.error('record of resources in force not written', { file: this.#file, err });
      }
    }
  }
}

/** The sum that goes with the data, as upstream makes it. */
const checksum = (data: string): number => fnv1a32(`(string)${data}`);

export function formatState(pods: ReadonlyMap<string, ReadonlyMap<string, ResourceRequirements>>): string {
  const entries: Entries = {};
  for (const [uid, containers] of pods) entries[uid] = { ContainerResources: Object.fromEntries(containers) };
  const data = goJson({ entries });
  return goJson({ data, checksum: checksum(data) });
}

export function parseState(text: string): Entries {
  const { data, checksum: sum } = JSON.parse(text) as { data?: string; checksum?: number };
  if (typeof data !== 'string' || sum !== checksum(data)) throw new Error('checksum does not match');
  return (JSON.parse(data) as { entries?: Entries }).entries ?? {};
}
