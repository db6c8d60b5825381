// The files of a pod that its containers have mounted and the kubelet writes or makes: hosts and termination messages.
// Whatever somebody put in their place is never written through, nor is a directory on the way that is a link entered.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { entryName } from '../host/files/entry-name.ts';
import { OpenDir } from '../host/files/open-dir.ts';
import { randomBytes, type Clock } from '../lib/clock.ts';
import { errnoOf } from '../lib/errors.ts';

const PRIVATE = 0o750;

/** The file a container's termination message is read from, writable by whoever the container runs as. */
export type TerminationLog = {
  readonly path: string;
  create(): Promise<void>;
  remove(): Promise<void>;
  /** Removes those of earlier starts that no instance of the container has mounted any more. */
  removeUnused(mounted: ReadonlySet<string>): Promise<void>;
};

const TERMINATION_LOG = /^[0-9a-f]{8}$/;
/** Removed with one start. There is one for each start before, unless an instance is left. */
const MAX_UNUSED = 1_000;

export class PodFiles {
  readonly #clock: Pick<Clock, 'random'>;
  readonly #podsDir: string;

  constructor(clock: Pick<Clock, 'random'>, rootDir: string) {
    this.#clock = clock;
    this.#podsDir = join(rootDir, 'pods');
  }

  /**
   * Written in place: containers that run already have this very file mounted. What has the text is not touched. Returns
   * its path.
   */
  async writeHosts(uid: string, text: string): Promise<string> {
    await this.#inside(uid, [], (dir) => dir.overwriteFile('etc-hosts', text, 0o644));
    return join(this.#podsDir, uid, 'etc-hosts');
  }

  /**
   * Writes the hosts file again where a write was cut off. One with other content is left alone: containers may have
   * changed it.
   */
  async repairHosts(uid: string, text: string): Promise<void> {
    const whole = Buffer.from(text);
    await this.#inside(uid, [], async (dir) => {
      const found = await dir.readFile('etc-hosts', whole.length - 1);
      if (found?.equals(whole.subarray(0, found.length)) === true) await dir.overwriteFile('etc-hosts', text, 0o644);
    });
  }

  /** A name for a fresh file for each start. Nothing is made yet: a container that is refused leaves no file behind. */
  newTerminationLog(uid: string, container: string): TerminationLog {
    const name = randomBytes(this.#clock, 4).toString('hex');
    const inside = (work: (dir: OpenDir) => Promise<void>): Promise<void> =>
      this.#inside(uid, ['containers', container], work);
    const directory = join(this.#podsDir, uid, 'containers', container);
    const path = join(directory, name);
    const isUnused =
      (mounted: ReadonlySet<string>) =>
      (other: string): boolean =>
        TERMINATION_LOG.test(other) && other !== name && !mounted.has(join(directory, other));
    return {
      path,
      create: () => inside((dir) => dir.createFile(name, Buffer.alloc(0), 0o666)),
      remove: () => inside((dir) => dir.unlink(name)),
      removeUnused: (mounted) =>
        inside(async (dir) => {
          for (const other of await dir.names(isUnused(mounted), MAX_UNUSED)) await dir.unlink(other);
        }),
    };
  }

  /**
   * Works in a directory below the pod's; what is missing on the way there is made. A pod's own directory and what is
   * above it are the kubelet's: no container has them mounted.
   */
  async #inside(uid: string, path: readonly string[], work: (dir: OpenDir) => Promise<void>): Promise<void> {
    let dir = await this.#podDir(uid);
    try {
      for (const name of path) {
        const next = await dir.ensureDir(name, PRIVATE);
        dir.closeNow();
        dir = next;
      }
      await work(dir);
    } finally {
      await dir.close();
    }
  }

  async #podDir(uid: string): Promise<OpenDir> {
    const path = join(this.#podsDir, entryName(uid));
    try {
      return await OpenDir.open(path);
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') throw err;
    }
    await mkdir(path, { recursive: true, mode: PRIVATE });
    return OpenDir.open(path);
  }
}
