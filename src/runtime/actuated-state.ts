// What pods and containers really run with: written when one starts or is resized, read by the planner and the status code, and
// kept in `<root>/actuated_pods_state` so that a resize in progress survives a restart of the agent.
import { formatState, parseState } from '../core/go-json.ts';
import type { PodUid } from '../core/ids.ts';
import type { ResourceRequirements } from '../core/pod.ts';
import type { Actuated } from '../core/pod-resources.ts';
import { LatestFile, type LatestFileDeps } from '../lib/latest-file.ts';

type Entry = {
  readonly ContainerResources?: Readonly<Record<string, ResourceRequirements>>;
  readonly PodLevelResources?: ResourceRequirements;
};
type InForce = { readonly containers: Map<string, ResourceRequirements>; readonly pod?: ResourceRequirements };

const NOTHING: Actuated = { containers: new Map() };

export class ActuatedState {
  readonly #file: LatestFile;
  readonly #pods = new Map<string, InForce>();

  constructor(deps: LatestFileDeps, opts: { readonly file: string }) {
    this.#file = new LatestFile(deps, { path: opts.file, content: () => this.#format() });
  }

  /** Reads what an earlier run left. */
  load(): Promise<void> {
    return this.#file.load((text) => {
      for (const [uid, { ContainerResources = {}, PodLevelResources }] of Object.entries(parseState<Entry>(text)))
        this.#pods.set(uid, {
          containers: new Map(Object.entries(ContainerResources)),
          ...(PodLevelResources !== undefined && { pod: PodLevelResources }),
        });
    });
  }

  of(uid: PodUid): Actuated {
    return this.#pods.get(uid) ?? NOTHING;
  }

  has(uid: PodUid): boolean {
    return this.#pods.has(uid);
  }

  set(uid: PodUid, container: string, resources: ResourceRequirements): void {
    const known = this.#pods.get(uid) ?? { containers: new Map() };
    known.containers.set(container, resources);
    this.#put(uid, known);
  }

  setPod(uid: PodUid, resources: ResourceRequirements): void {
    this.#put(uid, { containers: new Map(), ...this.#pods.get(uid), pod: resources });
  }

  #put(uid: PodUid, inForce: InForce): void {
    this.#pods.set(uid, inForce);
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
    for (const [uid, { containers, pod }] of this.#pods)
      entries[uid] = {
        ContainerResources: Object.fromEntries(containers),
        ...(pod !== undefined && { PodLevelResources: pod }),
      };
    return formatState(entries);
  }
}
