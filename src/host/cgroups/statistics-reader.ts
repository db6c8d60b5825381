// Reads a cgroup's statistics from the mounted hierarchies, a bounded number of files at a time so that a node full of
// pods does not keep the rest of the process from its disk.
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Semaphore } from '../../lib/semaphore.ts';
import { errnoOf } from '../../lib/errors.ts';
import type { CgroupLayout } from './layout.ts';
import { childDirs, isGone } from './remove-tree.ts';
import type { CgroupStatistics, Detail, FileList } from './statistics.ts';
import { filesV1, statisticsV1 } from './statistics-v1.ts';
import { filesV2, statisticsV2, UNIFIED } from './statistics-v2.ts';

const FILES_AT_A_TIME = 32;
/** Not written after a cgroup is made, so its time is the cgroup's. */
const BIRTH_FILE = { 1: 'cgroup.clone_children', 2: 'cgroup.events' } as const;

export class CgroupStatisticsReader {
  readonly version: 1 | 2;
  readonly #mounts: ReadonlyMap<string, string>;
  readonly #gate = new Semaphore(FILES_AT_A_TIME);

  constructor(layout: CgroupLayout) {
    this.version = layout.version;
    this.#mounts =
      layout.version === 2
        ? new Map([[UNIFIED, layout.mountPoint]])
        : new Map(layout.hierarchies.flatMap((h) => h.controllers.map((c): [string, string] => [c, h.mountPoint])));
  }

  /** Undefined when there is no such cgroup. */
  async read(path: string, detail: Detail, signal: AbortSignal): Promise<CgroupStatistics | undefined> {
    const texts = await this.#texts(path, this.version === 1 ? filesV1(detail) : filesV2(detail), signal);
    const text = (controller: string, file: string): string | undefined => texts.get(`${controller}/${file}`);
    const found = this.version === 1 ? statisticsV1(text) : statisticsV2(text);
    return found.cpu === undefined && found.memory === undefined ? undefined : found;
  }

  /** Processor time alone, for sampling. */
  async cpuUsageNs(path: string, signal: AbortSignal): Promise<number | undefined> {
    const files: FileList = this.version === 1 ? { cpuacct: ['cpuacct.usage'] } : { [UNIFIED]: ['cpu.stat'] };
    const texts = await this.#texts(path, files, signal);
    const text = (controller: string, file: string): string | undefined => texts.get(`${controller}/${file}`);
    return (this.version === 1 ? statisticsV1(text) : statisticsV2(text)).cpu?.usageNs;
  }

  /** When the cgroup was made, as far as its files tell; 0 when it is gone. */
  async createdMs(path: string): Promise<number> {
    const times = await Promise.all(
      [...new Set(this.#mounts.values())].flatMap((mount) =>
        [join(mount, path), join(mount, path, BIRTH_FILE[this.version])].map((file) =>
          stat(file).then(
            (found) => found.mtimeMs,
            () => Infinity,
          ),
        ),
      ),
    );
    const first = Math.min(...times);
    return first === Infinity ? 0 : first;
  }

  /** Names right below, from the hierarchy that accounts processor time. */
  children(path: string): Promise<readonly string[]> {
    const mount = this.#mounts.get(this.version === 1 ? 'cpuacct' : UNIFIED) ?? this.#mounts.get('memory');
    return mount === undefined ? Promise.resolve([]) : childDirs(join(mount, path));
  }

  /** Processes right in this cgroup. */
  async procs(path: string, signal: AbortSignal): Promise<readonly number[]> {
    const controller = this.version === 1 ? 'cpu' : UNIFIED;
    const texts = await this.#texts(path, { [controller]: ['cgroup.procs'] }, signal);
    return (texts.get(`${controller}/cgroup.procs`) ?? '').split('\n').filter(Boolean).map(Number);
  }

  async #texts(path: string, files: FileList, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const texts = new Map<string, string>();
    await Promise.all(
      Object.entries(files).flatMap(([controller, names]) => {
        const mount = this.#mounts.get(controller);
        if (mount === undefined) return [];
        return names.map(async (name) => {
          const text = await this.#gate.run(signal, () => readIfAny(join(mount, path, name)));
          if (text !== undefined) texts.set(`${controller}/${name}`, text);
        });
      }),
    );
    return texts;
  }
}

/** EOPNOTSUPP: a controller that is mounted but keeps no such figures here. */
async function readIfAny(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (err) {
    if (isGone(err) || errnoOf(err) === 'EOPNOTSUPP' || errnoOf(err) === 'ENOTSUP') return undefined;
    throw err;
  }
}
