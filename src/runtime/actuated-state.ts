// What containers really run with: written when one starts or is resized, read by the planner and the status code, and
// kept in `<root>/actuated_pods_state` so that a resize in progress survives a restart of the agent.
import { formatState, parseState } from '../core/go-json.ts';
import type { PodUid } from '../core/ids.ts';
import type { ResourceRequirements } from '../core/pod.ts';
import { LatestFile } from '../lib/latest-file.ts';
import type { Logger } from '../lib/logger.ts';
import type { Actuated } from './resize-plan.ts';

type Entry = { readonly ContainerResources?: Readonly<Record<string, ResourceRequirements>> };

const NOTHING: Actuated = new Map();

export class ActuatedState {
  readonly #file: LatestFile;
  readonly #pods = new Map<string, Map<string, ResourceRequirements>>();

  constructor(deps: { readonly log: Logger }, opts: { readonly file: string }) {
    this.#file = new LatestFile(deps, { path: opts.file, content: () => this.#format() });
  }

  /** Reads what an earlier run left. */
  load(): Promise<void> {
    return this.#file.load((text) => {
      for (const [uid, { ContainerResources = {} }] of Object.entries(parseState<Entry>(text)))
        this.#pods.set(uid, new Map(Object.entries(ContainerResources)));
    });
  }

  of(uid: PodUid): Actuated {
    return this.#pods.get(uid) ?? NOTHING;
  }

  set(uid: PodUid, container: string, resources: ResourceRequirements): void {
    const pod = this.#pods.get(uid) ?? new Map<string, ResourceRequirements>();
    this.#pods.set(uid, pod.set(container, resources));
    this.#file.changed();
  }

  /** Drops pods that are no longer there. */
  retain(alive: ReadonlySet<string>): void {
    const gone = [...this.#pods.keys()].filter((uid) => !alive.has(uid));
    for (const uid of gone) this.#pods.delete(uid);
    if (gone.length > 0) this.#file.changed();
  }

  /** Resolves when everything set so far is on disk, or was given up. */
  flush(): Promise<void> {
    return this.#file.flush();
  }

  #format(): string {
    const entries: Record<string, Entry> = {};
    for (const [uid, containers] of this.#pods) entries[uid] = { ContainerResources: Object.fromEntries(containers) };
    return formatState(entries);
  }
}
