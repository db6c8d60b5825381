// Whether the configured root of the pods' cgroups is there, asked before the health port opens: a kubelet that will not
// start must not say that it is well first. Which driver the runtime has is not known yet, so either form of the name
// will do; the tree of cgroups asks again when it is made.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KubeletError } from '../../lib/errors.ts';
import { cgroupPath, parseCgroupRoot } from '../cgroups/cgroup-names.ts';
import { parseCgroupMounts } from '../cgroups/layout.ts';

const DRIVERS = ['cgroupfs', 'systemd'] as const;

export function checkCgroupRoot(root: string, mountinfoPath = '/proc/self/mountinfo'): void {
  const names = DRIVERS.map((driver) => ({ driver, name: parseCgroupRoot(root, driver) }));
  if (names.some(({ name }) => name.length === 0)) return;
  const places = mountPoints(mountinfoPath);
  const paths = names.map(({ name, driver }) => cgroupPath(name, driver));
  if (places.length === 0 || places.some((place) => paths.some((path) => existsSync(join(place, path))))) return;
  throw new KubeletError('invalid', `cgroup-root "${root}" doesn't exist`);
}

/** None where nothing is mounted: whoever needs cgroups will say so in clearer words. */
function mountPoints(mountinfoPath: string): readonly string[] {
  try {
    const layout = parseCgroupMounts(readFileSync(mountinfoPath, 'utf8'));
    return layout.version === 2 ? [layout.mountPoint] : layout.hierarchies.map((h) => h.mountPoint);
  } catch {
    return [];
  }
}
