// Whose cgroup a path is, in the naming of either driver and of the common runtimes. Pure.
import { containerId, podUid, type ContainerId, type PodUid } from '../core/ids.ts';

export type CgroupOwner = { readonly podUid?: PodUid; readonly containerId?: ContainerId };

const POD_DIR = /^pod([0-9a-zA-Z][0-9a-zA-Z-]*)$/;
const POD_SLICE = /-pod([0-9a-zA-Z_]+)\.slice$/;
const CONTAINER = /^(?:[a-z-]+-)?([0-9a-f]{64})(?:\.scope)?$/;

export function ownerOfCgroup(path: string): CgroupOwner {
  const parts = path.split('/').filter(Boolean);
  for (const [i, part] of parts.entries()) {
    const uid = POD_DIR.exec(part)?.[1] ?? POD_SLICE.exec(part)?.[1]?.replaceAll('_', '-');
    if (uid === undefined) continue;
    const id = CONTAINER.exec(parts[i + 1] ?? '')?.[1];
    return { podUid: podUid(uid), ...(id !== undefined && { containerId: containerId(id) }) };
  }
  return {};
}

export type LimitLevel = 'container' | 'pod' | 'pods' | 'node';

/** At which level of the tree the limit was that a process died for. */
export function levelOfLimit(limitPath: string): LimitLevel {
  if (limitPath === '' || limitPath === '/') return 'node';
  const owner = ownerOfCgroup(limitPath);
  if (owner.containerId !== undefined) return 'container';
  return owner.podUid === undefined ? 'pods' : 'pod';
}
