// The kernel's own count of out-of-memory kills in one cgroup: tells after the fact, also where /dev/kmsg is closed.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../lib/errors.ts';
import type { CgroupLayout } from '../host/cgroups/layout.ts';

export type OomCounters = {
  /** Processes of this cgroup (on v2 also below it) that were killed. */
  readonly kills: number;
  /** How often this cgroup's own limit was hit. */
  readonly limitHits: number;
};

/** Undefined when the cgroup is gone or has no memory controller. */
export async function oomCountersOf(layout: CgroupLayout, path: string): Promise<OomCounters | undefined> {
  try {
    if (layout.version === 2) {
      const dir = join(layout.mountPoint, path);
      const events = keyed(await readFile(join(dir, 'memory.events'), 'utf8'));
      return { kills: events.get('oom_kill') ?? 0, limitHits: events.get('max') ?? 0 };
    }
    const memory = layout.hierarchies.find((h) => h.controllers.includes('memory'));
    if (memory === undefined) return undefined;
    const dir = join(memory.mountPoint, path);
    const [control, failures] = await Promise.all([
      readFile(join(dir, 'memory.oom_control'), 'utf8'),
      readFile(join(dir, 'memory.failcnt'), 'utf8'),
    ]);
    return { kills: keyed(control).get('oom_kill') ?? 0, limitHits: Number(failures) };
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENODEV') return undefined;
    throw err;
  }
}

const keyed = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .split('\n')
      .map((line) => line.split(' '))
      .map(([key = '', value = '']) => [key, Number(value)]),
  );
