// Reads a cgroup's statistics from the mounted hierarchies, a few cgroups at a time so that a node full of
// pods does not keep the rest of the process from its disk.
import { statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Semaphore } from '../../lib/semaphore.ts';
import { kernelFiles } from '../kernel-files.ts';
import type { CgroupLayout } from './layout.ts';
import { readFiles } from './read-files.ts';
import { childDirs, isGone } from './remove-tree.ts';
import { numberOf } from './kernel-formats.ts';
import type { CgroupStatistics, Detail, FileList, FileTexts } from './statistics.ts';
import { filesV1, statisticsV1 } from './statistics-v1.ts';
import { filesV2, statisticsV2, UNIFIED, usageNsV2 } from './statistics-v2.ts';

const CGROUPS_AT_A_TIME = 4;
/** Not written after a cgroup is made, so its time is the cgroup's. */
const BIRTH_FILE = { 1: 'cgroup.clone_children', 2: 'cgroup.events' } as const;

export class CgroupStatisticsReader {
  readonly version: 1 | 2;
  readonly #mounts: ReadonlyMap<string, string>;
  /** Where processor time is accounted: every cgroup of interest is there. */
  readonly #accounting: string;
  readonly #gate = new Semaphore(CGROUPS_AT_A_TIME);

  constructor(layout: CgroupLayout) {
    this.version = layout.version;
    this.#mounts =
      layout.version === 2
        ? new Map([[UNIFIED, layout.mountPoint]])
        : new Map(layout.hierarchies.flatMap((h) => h.controllers.map((c): [string, string] => [c, h.mountPoint])));
    this.#accounting =
      layout.version === 2 ? layout.mountPoint : (this.#mounts.get('cpuacct') ?? this.#mounts.get('memory') ?? '');
  }

  /** Undefined when there is no such cgroup. */
  async read(path: string, detail: Detail, signal: AbortSignal): Promise<CgroupStatistics | undefined> {
    const text = await this.#texts(path, this.version === 1 ? filesV1(detail) : filesV2(detail), signal);
    const found = this.version === 1 ? statisticsV1(text) : statisticsV2(text);
    return found.cpu === undefined && found.memory === undefined ? undefined : found;
  }

  /** Processor time alone, for sampling: one number of one file. */
  async cpuUsageNs(path: string, signal: AbortSignal): Promise<number | undefined> {
    const mount = this.#mounts.get(this.version === 1 ? 'cpuacct' : UNIFIED);
    if (mount === undefined) return undefined;
    const file = join(mount, path, this.version === 1 ? 'cpuacct.usage' : 'cpu.stat');
    const text = (await this.#gate.run(signal, () => readFiles([file]))).get(file);
    return this.version === 1 ? numberOf(text) : usageNsV2(text);
  }

  /** When the cgroup was made, as far as its files tell; 0 when it is gone. */
  async createdMs(path: string): Promise<number> {
    const dir = join(this.#accounting, path);
    const times = await Promise.all(
      [dir, join(dir, BIRTH_FILE[this.version])].map((file) =>
        kernelFiles
          .answer(
            () => stat(file),
            () => statSync(file),
          )
          .then(
            (found) => found.mtimeMs,
            () => Infinity,
          ),
      ),
    );
    const first = Math.min(...times);
    return first === Infinity ? 0 : first;
  }

  /** Names right below, from the hierarchy that accounts processor time. */
  children(path: string): Promise<readonly string[]> {
    return childDirs(join(this.#accounting, path));
  }

  /** Processes right in this cgroup. */
  async procs(path: string, signal: AbortSignal): Promise<readonly number[]> {
    const controller = this.version === 1 ? 'cpu' : UNIFIED;
    const mount = this.#mounts.get(controller);
    if (mount === undefined) return [];
    const text = await this.#gate.run(signal, () => kernelFiles.text(join(mount, path, 'cgroup.procs')).catch(ifGone));
    return text.split('\n').filter(Boolean).map(Number);
  }

  /** Those of a container: crun, and a systemd inside, put them into cgroups below its own. */
  async procsOfContainer(path: string, signal: AbortSignal): Promise<readonly number[]> {
    const own = await this.procs(path, signal);
    if (own.length > 0) return own;
    const children = await this.children(path);
    const below = await Promise.all(children.map((child) => this.procsOfContainer(`${path}/${child}`, signal)));
    return below.flat();
  }

  async #texts(path: string, files: FileList, signal: AbortSignal): Promise<FileTexts> {
    const dirs = new Map<string, string>();
    const paths: string[] = [];
    for (const [controller, names] of Object.entries(files)) {
      const mount = this.#mounts.get(controller);
      if (mount === undefined) continue;
      const dir = join(mount, path);
      dirs.set(controller, dir);
      for (const name of names) paths.push(`${dir}/${name}`);
    }
    const texts = await this.#gate.run(signal, () => readFiles(paths));
    return (controller, name) => texts.get(`${dirs.get(controller) ?? ''}/${name}`);
  }
}

const ifGone = (err: unknown): string => {
  if (isGone(err)) return '';
  throw err;
};
