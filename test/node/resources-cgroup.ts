// A cgroup subtree for one test run, and processes inside it. Works on v1 and v2; removed with everything in it.
import { spawn, type ChildProcess } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cgroups } from '../../src/host/cgroups/cgroups.ts';
import { detectCgroups, type CgroupLayout } from '../../src/host/cgroups/layout.ts';
import { systemBus } from '../../src/host/systemd/system-bus.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { cgroupPath, type CgroupDriver } from '../../src/host/cgroups/cgroup-names.ts';

export type TestCgroup = {
  readonly layout: CgroupLayout;
  readonly cgroups: Cgroups;
  /** Without systemd, for the cgroups a runtime would make. */
  readonly files: Cgroups;
  readonly driver: CgroupDriver;
  /** Name and path of the subtree's root. */
  readonly name: string;
  readonly root: string;
  /** The path of a cgroup below the root. */
  at(...parts: readonly string[]): string;
  /** A file of the cgroup, as the kernel shows it; `controller` matters on v1 only. */
  value(path: string, controller: string, file: string): Promise<string>;
  /** Runs a command as a member of the cgroup from its first instruction on. */
  spawnIn(path: string, command: readonly string[]): Promise<ChildProcess>;
  close(): Promise<void>;
};

const signal = new AbortController().signal;

/** `CGROUP_DRIVER=systemd` runs the same tests through systemd. */
export async function openTestCgroup(label: string): Promise<TestCgroup> {
  const driver: CgroupDriver = process.env['CGROUP_DRIVER'] === 'systemd' ? 'systemd' : 'cgroupfs';
  const layout = await detectCgroups();
  const cgroups = await openCgroups(systemClock, driver, systemBus(systemClock).units);
  const files = await openCgroups(systemClock, 'cgroupfs');
  const name = `kubeletts${label}${process.pid}`;
  const at = (...parts: readonly string[]): string => cgroupPath([name, ...parts], driver);
  const root = at();
  await cgroups.create(root, {}, signal);
  const children: ChildProcess[] = [];
  const dirOf = (path: string, controller: string): string => {
    if (layout.version === 2) return join(layout.mountPoint, path);
    const hierarchy = layout.hierarchies.find((h) => h.controllers.includes(controller));
    return join(hierarchy?.mountPoint ?? '/nowhere', path);
  };
  return {
    layout,
    cgroups,
    files,
    driver,
    name,
    root,
    at,
    value: async (path, controller, file) => (await readFile(join(dirOf(path, controller), file), 'utf8')).trim(),
    async spawnIn(path, command) {
      const child = spawn('/bin/sh', ['-c', 'read go && exec "$@"', 'sh', ...command], {
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      children.push(child);
      const dirs = layout.version === 2 ? [dirOf(path, '')] : layout.hierarchies.map((h) => join(h.mountPoint, path));
      for (const dir of dirs) await writeFile(join(dir, 'cgroup.procs'), String(child.pid));
      child.stdin?.on('error', () => undefined);
      child.stdin?.end('go\n');
      return child;
    },
    async close() {
      for (const child of children) child.kill('SIGKILL');
      await cgroups.destroy(root, signal);
    },
  };
}
