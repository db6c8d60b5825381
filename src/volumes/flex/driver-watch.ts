// Says when drivers come or change. Nothing is decided by it: drivers are looked at whenever one is called. Only their programs
// count: a driver that writes a log beside its own must not be called again for that. The directory is made where it is missing,
// so that whoever brings a driver finds it.
import { watch, type FSWatcher } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { errnoOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Runnable } from '../../lib/supervise.ts';
import { Wake } from '../../lib/wake.ts';
import { unescapePlugin } from '../layout.ts';
import { programOf, stampOf } from './driver-program.ts';

export type DriverWatchDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** Takes the names of drivers that came or are other programs now. */
  readonly onChange: (names: readonly string[]) => void;
};

/** A driver is copied in several steps; one look after the last of them is enough. */
const SETTLE_MS = 100;
/** The net below the watch. */
const RESCAN_MS = 60_000;

export class DriverWatch implements Runnable {
  readonly name = 'flex-driver-watch';
  readonly #deps: DriverWatchDeps;
  readonly #dir: string;
  readonly #wake = new Wake();
  readonly #watchers = new Map<string, { readonly handle: FSWatcher; readonly inode: string }>();
  /** Of the programs seen last, by the names of their drivers. */
  #stamps: ReadonlyMap<string, string> = new Map();

  constructor(deps: DriverWatchDeps, opts: { readonly dir: string }) {
    this.#deps = deps;
    this.#dir = opts.dir;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    let isFirst = true;
    try {
      while (!signal.aborted) {
        try {
          const changed = await this.#changed(await this.#scan());
          if (!isFirst && changed.length > 0) this.#deps.onChange(changed);
        } catch (err) {
          log.debug('directory of FlexVolume drivers cannot be read', { path: this.#dir, err });
        }
        isFirst = false;
        if (await this.#wake.rest(clock, RESCAN_MS, signal)) await clock.sleep(SETTLE_MS, signal);
      }
    } finally {
      for (const { handle } of this.#watchers.values()) handle.close();
      this.#watchers.clear();
    }
  }

  /** Watches before it reads: what appears in between is a reason to look again. */
  async #scan(): Promise<string[]> {
    await mkdir(this.#dir, { recursive: true, mode: 0o755 });
    await this.#watch(this.#dir);
    const entries = await readdir(this.#dir, { withFileTypes: true });
    const names = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name);
    const paths = new Set([this.#dir, ...names.map((name) => join(this.#dir, name))]);
    for (const path of paths) await this.#watch(path);
    for (const [path, { handle }] of this.#watchers) {
      if (paths.has(path)) continue;
      handle.close();
      this.#watchers.delete(path);
    }
    return names.map(unescapePlugin);
  }

  async #changed(names: readonly string[]): Promise<string[]> {
    const before = this.#stamps;
    const stamps = new Map<string, string>();
    for (const name of names) {
      const program = programOf(this.#dir, name);
      const stamp = program === undefined ? undefined : await stampOf(program);
      if (stamp !== undefined) stamps.set(name, stamp);
    }
    this.#stamps = stamps;
    return [...stamps].filter(([name, stamp]) => before.get(name) !== stamp).map(([name]) => name);
  }

  async #watch(path: string): Promise<void> {
    const inode = await inodeOf(path);
    const known = this.#watchers.get(path);
    if (known !== undefined && known.inode === inode) return;
    known?.handle.close();
    this.#watchers.delete(path);
    if (inode === undefined) return;
    try {
      const handle = watch(path, () => this.#wake.wake());
      handle.on('error', () => this.#wake.wake());
      this.#watchers.set(path, { handle, inode });
    } catch (err) {
      // The slow rescan still sees what happens here.
      this.#deps.log.warn('directory of FlexVolume drivers cannot be watched', { path, err });
    }
  }
}

async function inodeOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, birthtimeNs } = await stat(path, { bigint: true });
    return `${dev}:${ino}:${birthtimeNs}`;
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}
