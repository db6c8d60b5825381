// Which cgroups belong to which pods and containers. The kernel's directories decide, not what we meant to create.
import type { PodUid } from '../core/ids.ts';

export type SystemContainerName = 'kubelet' | 'runtime' | 'misc';

/** Where cgroups are on this node. */
export type CgroupPlaces = {
  /** The parent of everything that belongs to pods. */
  readonly pods: string;
  /** Directories that hold pods' cgroups: the parent itself and its service classes. */
  readonly tiers: readonly string[];
  readonly podUidOf: (dir: string) => PodUid | undefined;
  readonly system: readonly { readonly name: SystemContainerName; readonly path: string }[];
};

export type PodCgroup = {
  readonly path: string;
  /** Containers and sandboxes: path by the runtime's id. */
  readonly members: ReadonlyMap<string, string>;
};

export type Census = ReadonlyMap<PodUid, PodCgroup>;

interface Directories {
  children(path: string): Promise<readonly string[]>;
}

export async function takeCensus(cgroups: Directories, places: CgroupPlaces): Promise<Census> {
  const found = new Map<PodUid, PodCgroup>();
  await Promise.all(
    places.tiers.map(async (tier) => {
      const dirs = await cgroups.children(tier);
      await Promise.all(
        dirs.map(async (dir) => {
          const uid = places.podUidOf(dir);
          if (uid === undefined) return;
          const path = join(tier, dir);
          found.set(uid, { path, members: membersOf(path, await cgroups.children(path)) });
        }),
      );
    }),
  );
  return found;
}

function membersOf(path: string, dirs: readonly string[]): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  for (const dir of dirs) {
    const id = memberIdOf(dir);
    if (id !== undefined) members.set(id, join(path, dir));
  }
  return members;
}

/** `<id>`, for systemd `<prefix>-<id>.scope`, for CRI-O `crio-<id>` too. A container's monitor is not the container. */
export function memberIdOf(dir: string): string | undefined {
  if (dir.includes('conmon')) return undefined;
  const id = dir.endsWith('.scope') ? dir.slice(0, -'.scope'.length).split('-').at(-1) : dir.replace(/^crio-/, '');
  return id !== undefined && /^[0-9a-zA-Z]+$/.test(id) ? id : undefined;
}

const join = (parent: string, name: string): string => (parent === '/' ? `/${name}` : `${parent}/${name}`);
