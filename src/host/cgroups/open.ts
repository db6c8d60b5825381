// Picks the cgroup access for this machine and the configured driver.
import type { Clock } from '../../lib/clock.ts';
import type { CgroupDriver } from './cgroup-names.ts';
import { CgroupV1 } from './cgroup-v1.ts';
import { CgroupV2 } from './cgroup-v2.ts';
import type { Cgroups } from './cgroups.ts';
import { detectCgroups } from './layout.ts';
import { SystemdSlices, type Units } from './systemd-slices.ts';

/** `units` is systemd's manager for the systemd driver. */
export async function openCgroups(clock: Clock, driver: 'cgroupfs'): Promise<Cgroups>;
export async function openCgroups(clock: Clock, driver: CgroupDriver, units: Units): Promise<Cgroups>;
export async function openCgroups(clock: Clock, driver: CgroupDriver, units?: Units): Promise<Cgroups> {
  const layout = await detectCgroups();
  const files =
    layout.version === 1
      ? new CgroupV1(clock, layout.hierarchies, layout.unified)
      : new CgroupV2(clock, layout.mountPoint);
  return driver === 'systemd' && units !== undefined ? new SystemdSlices({ files, units }) : files;
}
