// Which entries of a manager's state belong to nobody any more. Pure.
import type { PodUid } from '../../core/ids.ts';
import { uidOf, type Pod } from '../../core/pod.ts';

/** The pods that managers look after, as far as they are known. */
export interface ManagedPods {
  /** All that are not over, be they admitted or not judged yet. */
  unfinished(): readonly Pod[];
  /** Whether every source was heard: before that an unknown pod may still turn up. */
  sourcesReady(): boolean;
  /** The id of a container that runs; undefined while it does not. */
  runningId(uid: PodUid, container: string): string | undefined;
}

/**
 * Entries, by pod and container, that no init or main container of an unfinished pod has and no running container uses:
 * of a pod that was deleted while the agent was down nothing else is known until it is being stopped.
 */
export function staleEntries(
  entries: ReadonlyMap<string, ReadonlyMap<string, unknown>>,
  pods: ManagedPods,
): readonly (readonly [uid: string, container: string])[] {
  if (entries.size === 0 || !pods.sourcesReady()) return [];
  const known = new Map(pods.unfinished().map((pod) => [String(uidOf(pod)), pod]));
  return [...entries].flatMap(([uid, own]) => {
    const spec = known.get(uid)?.spec;
    const names = new Set([...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ name }) => name));
    const isHeld = (name: string): boolean => names.has(name) || pods.runningId(uid as PodUid, name) !== undefined;
    return [...own.keys()].filter((name) => !isHeld(name)).map((name) => [uid, name] as const);
  });
}
