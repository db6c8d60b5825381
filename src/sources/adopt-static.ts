// A static pod that runs already under another UID is adopted instead of being made again. The UID is a hash of the
// manifest, and every kubelet has its own: the Go kubelet's cannot be computed here. What tells is the time: the sandbox
// says when its pod was seen first, and a manifest that has not changed since is the one it was made of.
import { CONFIG_HASH, CONFIG_SEEN, CONFIG_SOURCE, namespaceOf, podKey, type Pod } from '../core/pod.ts';
import { isAlive, type PodSnapshot } from '../core/snapshot.ts';
import { parseTimeMs } from '../core/time.ts';
import type { Logger } from '../lib/logger.ts';

export type AdoptedPodsDeps = {
  readonly log: Logger;
  /** What runs. */
  readonly observed: () => Iterable<PodSnapshot>;
};

/** Which manifests of one source keep the UIDs their pods had when they were found. */
export class AdoptedPods {
  readonly #deps: AdoptedPodsDeps;
  readonly #source: 'file' | 'http';
  readonly #uids = new Map<string, string>();

  constructor(deps: AdoptedPodsDeps, source: 'file' | 'http') {
    this.#deps = deps;
    this.#source = source;
  }

  /** Once adopted, the same manifest keeps the UID, also when it is touched. */
  adopt(pod: Pod, changedMs: number): Pod {
    const uid = pod.metadata.uid ?? '';
    const known = this.#uids.get(uid);
    if (known !== undefined) return withUid(pod, known);
    const adopted = adoptStatic(pod, this.#source, changedMs, this.#deps.observed());
    if (adopted === pod) return pod;
    const now = adopted.metadata.uid ?? '';
    this.#deps.log.info('static pod is adopted under the uid it runs with', { pod: podKey(pod), uid: now });
    this.#uids.set(uid, now);
    return adopted;
  }
}

/** The pod, under the UID it runs with if its manifest, last changed at `changedMs`, is the one it was made of. */
export function adoptStatic(pod: Pod, source: string, changedMs: number, observed: Iterable<PodSnapshot>): Pod {
  const found = [...observed].filter((s) => s.name === pod.metadata.name && s.namespace === namespaceOf(pod));
  if (found.some((s) => s.uid === pod.metadata.uid)) return pod;
  const same = found.find((s) => isAlive(s) && s.sandboxes.some((sandbox) => isMadeOf(sandbox, source, changedMs)));
  return same === undefined ? pod : withUid(pod, same.uid);
}

const isMadeOf = ({ annotations = {} }: PodSnapshot['sandboxes'][number], source: string, changedMs: number): boolean =>
  annotations[CONFIG_SOURCE] === source && parseTimeMs(annotations[CONFIG_SEEN]) >= changedMs;

const withUid = (pod: Pod, uid: string): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, uid, annotations: { ...pod.metadata.annotations, [CONFIG_HASH]: uid } },
});
