// Picks the cgroup access for this machine and the configured driver.
import type { Clock } from '../../lib/clock.ts';
import { CgroupV1 } from './cgroup-v1.ts';
import { CgroupV2 } from './cgroup-v2.ts';
import type { Cgroups } from './cgroups.ts';
import { detectCgroups } from './layout.ts';
import { busctl, SystemdSlices } from './systemd-slices.ts';

export type CgroupDriver = 'cgroupfs' | 'systemd';

export async function openCgroups(clock: Clock, driver: CgroupDriver): Promise<Cgroups> {
  const layout = await detectCgroups();
  const files =
    layout.version === 1
      ? new CgroupV1(clock, layout.hierarchies, layout.unified)
      : new CgroupV2(clock, layout.mountPoint);
  return driver === 'systemd' ? new SystemdSlices({ files, bus: busctl, clock }) : files;
}
