// Running pods that no manifest names while a manifest of their source cannot be read or understood. Such a pod may be the
// one the broken manifest is about: it stays as it is until the manifest is right or gone.
import { CONFIG_SOURCE } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { FoundProblem, ProblemBoard } from './problem.ts';

export type KeptPodsDeps = {
  readonly problems: Pick<ProblemBoard, 'set'>;
  /** By source: manifests without a good version since the agent started. */
  readonly unread: ReadonlyMap<string, () => readonly string[]>;
};

const SOURCE = 'kept pods';

export class KeptPods {
  readonly #deps: KeptPodsDeps;

  constructor(deps: KeptPodsDeps) {
    this.#deps = deps;
  }

  /** Whether the pod may be one of a manifest that is broken. Its sandbox says which source it came from. */
  mayBeWanted(snapshot: PodSnapshot): boolean {
    return this.#unreadOf(snapshot).length > 0;
  }

  /** All pods that are kept now. */
  tell(kept: readonly PodSnapshot[]): void {
    this.#deps.problems.set(
      SOURCE,
      kept.map((snapshot): FoundProblem => {
        const files = this.#unreadOf(snapshot).join(', ');
        const message = `kept, its manifest is broken: no manifest names this running pod, and not usable is ${files}`;
        return { where: `pod ${snapshot.namespace}/${snapshot.name}`, severity: 'warning', message };
      }),
    );
  }

  #unreadOf({ sandboxes }: PodSnapshot): readonly string[] {
    const sources = new Set(sandboxes.map(({ annotations }) => annotations?.[CONFIG_SOURCE] ?? ''));
    return [...sources].flatMap((source) => this.#deps.unread.get(source)?.() ?? []);
  }
}
