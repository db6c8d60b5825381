// Finds the sockets in a folder and all folders below it and says when to look again. Names with a leading dot and
// everything that is no socket are passed over; links are not followed.
import { watch, type FSWatcher } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';

/** Deeper folders are not looked into: nobody registers there, and a loop of mounts must end somewhere. */
const MAX_DEPTH = 8;

/** Each socket with a stamp that changes when another socket takes its place. */
export type Sockets = ReadonlyMap<string, string>;

export class SocketTree {
  readonly #root: string;
  readonly #log: Logger;
  readonly #onChange: () => void;
  readonly #watchers = new Map<string, { readonly handle: FSWatcher; readonly stamp: string }>();

  constructor(root: string, log: Logger, onChange: () => void) {
    this.#root = root;
    this.#log = log;
    this.#onChange = onChange;
  }

  async scan(): Promise<Sockets> {
    const sockets = new Map<string, string>();
    const folders = new Set<string>();
    await this.#enter(this.#root, 0, sockets, folders);
    for (const [path, { handle }] of this.#watchers) {
      if (folders.has(path)) continue;
      handle.close();
      this.#watchers.delete(path);
    }
    return sockets;
  }

  close(): void {
    for (const { handle } of this.#watchers.values()) handle.close();
    this.#watchers.clear();
  }

  async #enter(path: string, depth: number, sockets: Map<string, string>, folders: Set<string>): Promise<void> {
    const stamp = await stampOf(path);
    if (stamp === undefined) return;
    folders.add(path);
    // Watched before it is read: what appears in between is a reason to look again.
    this.#watch(path, stamp);
    for (const entry of await entriesOf(path)) {
      if (entry.name.startsWith('.')) continue;
      const child = join(path, entry.name);
      if (entry.isSocket()) {
        const seen = await stampOf(child);
        if (seen !== undefined) sockets.set(child, seen);
      } else if (entry.isDirectory() && depth < MAX_DEPTH) await this.#enter(child, depth + 1, sockets, folders);
    }
  }

  #watch(path: string, stamp: string): void {
    const known = this.#watchers.get(path);
    if (known?.stamp === stamp) return;
    known?.handle.close();
    this.#watchers.delete(path);
    try {
      const handle = watch(path, this.#onChange);
      handle.on('error', () => this.#onChange());
      this.#watchers.set(path, { handle, stamp });
    } catch (err) {
      // The slow rescan still sees what happens here.
      this.#log.warn('folder of plugin sockets cannot be watched', { path, err });
    }
  }
}

/** The time of birth tells a new file from an old one whose inode it got; a change of mode or owner does not show. */
async function stampOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, birthtimeNs } = await lstat(path, { bigint: true });
    return `${dev}:${ino}:${birthtimeNs}`;
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}

async function entriesOf(path: string): ReturnType<typeof readEntries> {
  try {
    return await readEntries(path);
  } catch (err) {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return [];
    throw err;
  }
}

const readEntries = (path: string) => readdir(path, { withFileTypes: true });
