// The values of a pod's cgroup and of those of its containers as the kernel has them, for people to compare.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CgroupLayout } from '../host/cgroups/layout.ts';
import type { CgroupValues } from './ports.ts';

/** Files by controller; in a unified tree the controller does not matter. */
const FILES: Readonly<Record<1 | 2, readonly (readonly [controller: string, file: string])[]>> = {
  1: [
    ['cpu', 'cpu.shares'],
    ['cpu', 'cpu.cfs_quota_us'],
    ['cpu', 'cpu.cfs_period_us'],
    ['memory', 'memory.limit_in_bytes'],
    ['memory', 'memory.usage_in_bytes'],
    ['memory', 'memory.max_usage_in_bytes'],
    ['memory', 'memory.failcnt'],
    ['pids', 'pids.max'],
    ['pids', 'pids.current'],
    ['cpuset', 'cpuset.cpus'],
  ],
  2: [
    ['', 'cpu.weight'],
    ['', 'cpu.max'],
    ['', 'memory.min'],
    ['', 'memory.high'],
    ['', 'memory.max'],
    ['', 'memory.current'],
    ['', 'memory.peak'],
    ['', 'memory.swap.max'],
    ['', 'pids.max'],
    ['', 'pids.current'],
    ['', 'cpuset.cpus.effective'],
  ],
};

export type PodCgroupPaths = {
  readonly path: string;
  /** By the runtime's id. */
  readonly members: ReadonlyMap<string, string>;
};

export async function cgroupValues(
  layout: CgroupLayout,
  pod: PodCgroupPaths,
  nameOf: (id: string) => string | undefined,
): Promise<readonly CgroupValues[]> {
  const read = async (name: string, path: string): Promise<CgroupValues> => ({
    name,
    values: await valuesAt(layout, path),
  });
  const members = [...pod.members].flatMap(([id, path]) => {
    const name = nameOf(id);
    return name === undefined ? [] : [read(name, path)];
  });
  const found = await Promise.all([read('pod', pod.path), ...members]);
  return found.filter(({ values }) => Object.keys(values).length > 0);
}

async function valuesAt(layout: CgroupLayout, path: string): Promise<Readonly<Record<string, string>>> {
  const values = await Promise.all(
    FILES[layout.version].map(async ([controller, file]) => {
      const mount = mountOf(layout, controller);
      if (mount === undefined) return [];
      // Not every kernel has every file, and the cgroup may be gone by now.
      const text = await readFile(join(mount, path, file), 'utf8').catch(() => '');
      return text === '' ? [] : [[file, text.trim()] as const];
    }),
  );
  return Object.fromEntries(values.flat());
}

const mountOf = (layout: CgroupLayout, controller: string): string | undefined =>
  layout.version === 2
    ? layout.mountPoint
    : layout.hierarchies.find((h) => h.controllers.includes(controller))?.mountPoint;
