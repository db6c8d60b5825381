// Which namespaces a pod's containers share, with the node, the pod or one another.
import { NamespaceMode, type IDMapping, type NamespaceOption } from '../cri/gen/cri.ts';
import type { Pod } from '../core/pod.ts';
import type { Partially } from '../lib/proto/codec.ts';

export type UserNamespaceMapping = { readonly uids: readonly IDMapping[]; readonly gids: readonly IDMapping[] };

export function namespaceOptions(
  pod: Pod,
  userns: UserNamespaceMapping | undefined,
  targetId?: string,
): Partially<NamespaceOption> {
  const { hostNetwork, hostPID, hostIPC, shareProcessNamespace } = pod.spec;
  const pid =
    hostPID === true
      ? NamespaceMode.NODE
      : shareProcessNamespace === true
        ? NamespaceMode.POD
        : NamespaceMode.CONTAINER;
  // A debug container joins its target's processes where it would otherwise be alone.
  const joins = targetId !== undefined && pid === NamespaceMode.CONTAINER;
  return {
    network: hostNetwork === true ? NamespaceMode.NODE : NamespaceMode.POD,
    ipc: hostIPC === true ? NamespaceMode.NODE : NamespaceMode.POD,
    pid: joins ? NamespaceMode.TARGET : pid,
    ...(joins ? { targetId } : {}),
    usernsOptions:
      userns === undefined
        ? { mode: NamespaceMode.NODE }
        : { mode: NamespaceMode.POD, uids: userns.uids, gids: userns.gids },
  };
}
