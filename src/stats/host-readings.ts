// What is read of the machine for statistics: filesystems, the sizes of log files, tasks, interfaces. No directory is
// walked: log folders are flat.
import { lstat, statfs } from 'node:fs/promises';
import { OpenDir } from '../host/files/open-dir.ts';
import { readMachine, withMemoryNow, type MachineFacts } from '../host/machine.ts';
import { interfacesOf, readBootMs, readSwapUsed, readTasks, type InterfaceCounters } from '../host/proc.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf } from '../lib/errors.ts';
import type { FsCapacity, Usage } from './summary.ts';

const BLOCK = 512;
/** Of a log folder that a pod filled with names: what is said is then less than what is used. */
const MAX_FILES = 10_000;
const MACHINE_MS = 60_000;

export class HostReadings {
  readonly #clock: Clock;
  #machine: { readonly facts: MachineFacts; readonly atMs: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async filesystem(path: string): Promise<FsCapacity> {
    const fs = await statfs(path);
    return {
      atMs: this.#clock.now(),
      capacityBytes: fs.blocks * fs.bsize,
      availableBytes: fs.bavail * fs.bsize,
      freeBytes: fs.bfree * fs.bsize,
      inodes: fs.files,
      inodesFree: fs.ffree,
    };
  }

  /** What the plain files right in a folder take on disk; undefined when there is no such folder. */
  async filesIn(dir: string): Promise<Usage | undefined> {
    const open = await OpenDir.follow(dir).catch(ifGone(undefined));
    if (open === undefined) return undefined;
    try {
      let [bytes, inodes, left] = [0, 0, MAX_FILES];
      for await (const names of open.batches(await open.stat()))
        for (const name of names) {
          if (left-- <= 0) return { bytes, inodes };
          const found = await open.lstat(name);
          if (found?.isFile() !== true) continue;
          bytes += found.blocks * BLOCK;
          inodes++;
        }
      return { bytes, inodes };
    } finally {
      await open.close();
    }
  }

  /** Undefined when it is gone or no plain file. */
  async file(path: string): Promise<Usage | undefined> {
    const found = await lstat(path).catch(ifGone(undefined));
    return found?.isFile() === true ? { bytes: found.blocks * BLOCK, inodes: 1 } : undefined;
  }

  interfaces(pid: number): Promise<readonly InterfaceCounters[] | undefined> {
    return interfacesOf(pid);
  }

  /** Memory as it is now; processors and the kernel's limits, which hardly ever change, a minute old at most. */
  async machine(): Promise<MachineFacts> {
    const now = this.#clock.monotonic();
    if (this.#machine !== undefined && now - this.#machine.atMs < MACHINE_MS) return withMemoryNow(this.#machine.facts);
    const facts = await readMachine();
    this.#machine = { facts, atMs: now };
    return facts;
  }

  bootMs(): Promise<number> {
    return readBootMs();
  }

  swapUsed(): Promise<number> {
    return readSwapUsed();
  }

  tasks(): Promise<number> {
    return readTasks();
  }
}

const ifGone =
  <T>(instead: T) =>
  (err: unknown): T => {
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return instead;
    throw err;
  };
