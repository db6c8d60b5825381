// The files of a pod that its containers have mounted and the kubelet writes or makes: hosts and termination messages.
// Whatever somebody put in their place is never written through, nor is a directory on the way that is a link entered.
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { OpenDir } from '../host/files/open-dir.ts';

const PRIVATE = 0o750;

export class PodFiles {
  readonly #podsDir: string;

  constructor(rootDir: string) {
    this.#podsDir = join(rootDir, 'pods');
  }

  /** Written in place: containers that run already have this very file mounted. Returns its path. */
  async writeHosts(uid: string, text: string): Promise<string> {
    await this.#inside([uid], (dir) => dir.overwriteFile('etc-hosts', text, 0o644));
    return join(this.#podsDir, uid, 'etc-hosts');
  }

  /** A fresh file for each start, writable by whoever the container runs as. Returns its path. */
  async newTerminationLog(uid: string, container: string): Promise<string> {
    const name = randomBytes(4).toString('hex');
    await this.#inside([uid, 'containers', container], (dir) => dir.createFile(name, Buffer.alloc(0), 0o666));
    return join(this.#podsDir, uid, 'containers', container, name);
  }

  /** Works in a directory below the pods' directory; what is missing on the way there is made. */
  async #inside(path: readonly string[], work: (dir: OpenDir) => Promise<void>): Promise<void> {
    await mkdir(this.#podsDir, { recursive: true, mode: PRIVATE });
    let dir = await OpenDir.open(this.#podsDir);
    try {
      for (const name of path) {
        const next = await dir.ensureDir(name, PRIVATE);
        await dir.close();
        dir = next;
      }
      await work(dir);
    } finally {
      await dir.close();
    }
  }
}
