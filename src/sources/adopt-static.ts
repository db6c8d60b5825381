// A static pod that runs already under another UID is adopted instead of being made again. The UID is a hash of the
// manifest, and every kubelet has its own: the Go kubelet's cannot be computed here. What tells is the time: the sandbox
// says when its pod was seen first, and a manifest that has not changed since is the one it was made of. Pure.
import { CONFIG_HASH, CONFIG_SEEN, CONFIG_SOURCE, namespaceOf, type Pod } from '../core/pod.ts';
import { isAlive, type PodSnapshot } from '../core/snapshot.ts';
import { parseTimeMs } from '../core/time.ts';

/** The pod, under the UID it runs with if its manifest, last changed at `changedMs`, is the one it was made of. */
export function adoptStatic(pod: Pod, changedMs: number, observed: Iterable<PodSnapshot>): Pod {
  const found = [...observed].filter((s) => s.name === pod.metadata.name && s.namespace === namespaceOf(pod));
  if (found.some((s) => s.uid === pod.metadata.uid)) return pod;
  const same = found.find((s) => isAlive(s) && s.sandboxes.some((sandbox) => isMadeOf(sandbox, changedMs)));
  return same === undefined ? pod : withUid(pod, same.uid);
}

const isMadeOf = ({ annotations = {} }: PodSnapshot['sandboxes'][number], changedMs: number): boolean =>
  annotations[CONFIG_SOURCE] === 'file' && parseTimeMs(annotations[CONFIG_SEEN]) >= changedMs;

export const withUid = (pod: Pod, uid: string): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, uid, annotations: { ...pod.metadata.annotations, [CONFIG_HASH]: uid } },
});
