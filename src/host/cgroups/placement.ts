// Puts processes of the machine into cgroups that are not the pods'. They are plain directories whichever driver pods have:
// no unit of systemd stands behind them.
import { readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf } from '../../lib/errors.ts';
import { kernelFiles } from '../kernel-files.ts';
import { CgroupV1 } from './cgroup-v1.ts';
import { CgroupV2 } from './cgroup-v2.ts';
import type { Cgroups } from './cgroups.ts';
import type { CgroupLayout } from './layout.ts';

const PROCESSES = 'cgroup.procs';

export class Placement {
  readonly #roots: readonly string[];
  /** Every process of the machine is found from here. */
  readonly #census: string;
  readonly #cgroups: Pick<Cgroups, 'create'>;
  readonly #proc: string;

  constructor(clock: Clock, layout: CgroupLayout, proc = '/proc') {
    this.#proc = proc;
    if (layout.version === 1) {
      const { hierarchies } = layout;
      this.#roots = hierarchies.map((h) => h.mountPoint);
      this.#census = (hierarchies.find((h) => h.controllers.includes('devices')) ?? hierarchies[0])?.mountPoint ?? '';
      this.#cgroups = new CgroupV1(clock, hierarchies);
    } else {
      this.#roots = [layout.mountPoint];
      this.#census = layout.mountPoint;
      this.#cgroups = new CgroupV2(clock, layout.mountPoint);
    }
  }

  /** Makes the cgroup where it is missing. A process that has ended needs no place. */
  async place(path: string, pids: readonly number[], signal: AbortSignal): Promise<void> {
    await this.#cgroups.create(path, {}, signal);
    for (const pid of pids)
      for (const root of this.#roots)
        await writeFile(join(root, path, PROCESSES), String(pid)).catch((err: unknown) => {
          if (errnoOf(err) !== 'ESRCH') throw err;
        });
  }

  /** Processes in no cgroup, but for the first one and the kernel's own. */
  async unplaced(): Promise<readonly number[]> {
    const lines = (await kernelFiles.text(join(this.#census, PROCESSES))).split('\n');
    const pids = lines.map(Number).filter((pid) => pid > 1);
    const programs = await Promise.all(pids.map((pid) => this.#hasProgram(pid)));
    return pids.filter((_, i) => programs[i]);
  }

  #hasProgram(pid: number): Promise<boolean> {
    return readlink(join(this.#proc, String(pid), 'exe')).then(
      () => true,
      (err: unknown) => errnoOf(err) !== 'ENOENT',
    );
  }
}
