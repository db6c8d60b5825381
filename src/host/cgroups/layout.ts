// Finds out how this machine mounts its cgroups. Unified (v2) wins only when it is all there is at the usual place;
// a hybrid machine keeps its controllers in v1 and counts as v1.
import { readFile } from 'node:fs/promises';
import { KubeletError } from '../../lib/errors.ts';

export type Hierarchy = { readonly mountPoint: string; readonly controllers: readonly string[] };

export type CgroupLayout =
  | {
      readonly version: 1;
      readonly hierarchies: readonly Hierarchy[];
      /** On a hybrid machine: the v2 tree beside them, in which runtimes put containers too. */
      readonly unified?: string;
    }
  | { readonly version: 2; readonly mountPoint: string };

export const detectCgroups = async (mountinfoPath = '/proc/self/mountinfo'): Promise<CgroupLayout> =>
  parseCgroupMounts(await readFile(mountinfoPath, 'utf8'));

/** The v1 hierarchy without controllers that systemd keeps for itself is listed as `systemd`. */
export function parseCgroupMounts(mountinfo: string): CgroupLayout {
  const hierarchies: Hierarchy[] = [];
  const seen = new Set<string>();
  let unified: string | undefined;
  for (const line of mountinfo.split('\n')) {
    const [left, right] = line.split(' - ');
    const mountPoint = unescapeMount(left?.split(' ')[4] ?? '');
    const [type, , options = ''] = right?.split(' ') ?? [];
    if (type === 'cgroup2') unified ??= mountPoint;
    if (type !== 'cgroup') continue;
    const controllers = controllersIn(options);
    if (controllers.length === 0 || controllers.some((c) => seen.has(c))) continue;
    for (const controller of controllers) seen.add(controller);
    hierarchies.push({ mountPoint, controllers });
  }
  if (hierarchies.some((h) => h.controllers.includes('memory') || h.controllers.includes('cpu')))
    return { version: 1, hierarchies, ...(unified === undefined ? {} : { unified }) };
  if (unified !== undefined) return { version: 2, mountPoint: unified };
  throw new KubeletError('unavailable', 'no cgroup hierarchy with a cpu or memory controller is mounted');
}

const NOT_CONTROLLERS = new Set(['rw', 'ro', 'xattr', 'clone_children', 'noprefix', 'none', 'seclabel']);

function controllersIn(options: string): string[] {
  const controllers: string[] = [];
  for (const option of options.split(',')) {
    if (option.startsWith('name=')) controllers.push(option.slice('name='.length));
    else if (!NOT_CONTROLLERS.has(option) && !option.includes('=')) controllers.push(option);
  }
  return controllers;
}

const unescapeMount = (text: string): string =>
  text.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
