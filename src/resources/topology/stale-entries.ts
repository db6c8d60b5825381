// Which entries of a manager's state belong to nobody any more. Pure.
import { uidOf, type Pod } from '../../core/pod.ts';

/** The pods that managers look after, as far as they are known. */
export interface ManagedPods {
  /** All that are not over, be they admitted or not judged yet. */
  unfinished(): readonly Pod[];
  /** Whether every source was heard: before that an unknown pod may still turn up. */
  sourcesReady(): boolean;
}

/** Entries, by pod and container, that no init or main container of an unfinished pod has. */
export function staleEntries(
  entries: ReadonlyMap<string, ReadonlyMap<string, unknown>>,
  pods: ManagedPods,
): readonly (readonly [uid: string, container: string])[] {
  if (entries.size === 0 || !pods.sourcesReady()) return [];
  const known = new Map(pods.unfinished().map((pod) => [String(uidOf(pod)), pod]));
  return [...entries].flatMap(([uid, own]) => {
    const spec = known.get(uid)?.spec;
    const names = new Set([...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ name }) => name));
    return [...own.keys()].filter((name) => !names.has(name)).map((name) => [uid, name] as const);
  });
}
