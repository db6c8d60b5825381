// What pods and containers really run with: written when one starts or is resized, read by the planner and the status code, and
// kept in `<root>/actuated_pods_state` so that a resize in progress survives a restart of the agent.
import type { PodUid } from '../core/ids.ts';
import type { ResourceRequirements } from '../core/pod.ts';
import { formatPodResourceState, parsePodResourceState, type PodResourceEntry } from '../core/pod-resource-state.ts';
import type { Actuated } from '../core/pod-resources.ts';
import { LatestFile, type LatestFileDeps } from '../lib/latest-file.ts';

type InForce = { readonly containers: ReadonlyMap<string, ResourceRequirements>; readonly pod?: ResourceRequirements };

const NOTHING: Actuated = { containers: new Map() };

export class ActuatedState {
  readonly #deps: LatestFileDeps;
  readonly #path: string;
  readonly #file: LatestFile;
  readonly #pods = new Map<string, InForce>();
  readonly #entries = new WeakMap<InForce, PodResourceEntry>();

  constructor(deps: LatestFileDeps, opts: { readonly file: string }) {
    this.#deps = deps;
    this.#path = opts.file;
    this.#file = new LatestFile(deps, { path: opts.file, content: () => this.#format() });
  }

  /** Reads what an earlier run left. */
  load(): Promise<void> {
    return this.#file.load((text) => {
      const { pods, damaged } = parsePodResourceState(text);
      for (const [uid, { containers, ...rest }] of pods)
        this.#pods.set(uid, { containers: new Map(Object.entries(containers)), ...rest });
      for (const entry of damaged) this.#deps.log.warn('state entry left out', { path: this.#path, ...entry });
    });
  }

  of(uid: PodUid): Actuated {
    return this.#pods.get(uid) ?? NOTHING;
  }

  has(uid: PodUid): boolean {
    return this.#pods.has(uid);
  }

  set(uid: PodUid, container: string, resources: ResourceRequirements): void {
    const known = this.#pods.get(uid);
    const containers = new Map(known?.containers).set(container, resources);
    this.#put(uid, { ...known, containers });
  }

  /** Of all containers of a pod, which may be many, at once. */
  setAll(uid: PodUid, containers: Iterable<readonly [string, ResourceRequirements]>): void {
    const known = this.#pods.get(uid);
    this.#put(uid, { ...known, containers: new Map([...(known?.containers ?? []), ...containers]) });
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

  /** Writes the file one last time. */
  close(): Promise<void> {
    return this.#file.close();
  }

  #format(): string {
    return formatPodResourceState(new Map([...this.#pods].map(([uid, inForce]) => [uid, this.#entry(inForce)])));
  }

  /** The same object for what has not changed: its text is made once. */
  #entry(inForce: InForce): PodResourceEntry {
    let known = this.#entries.get(inForce);
    if (known === undefined) {
      const { containers, ...rest } = inForce;
      this.#entries.set(inForce, (known = { containers: Object.fromEntries(containers), ...rest }));
    }
    return known;
  }
}
