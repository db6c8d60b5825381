// The device checkpoint on disk. A file that cannot be understood is kept aside before anything is written in its place; one that
// cannot be read is not overwritten: what it says counts once it can be.
import { link } from 'node:fs/promises';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { StateFile } from '../lib/state-file.ts';
import { parseCheckpoint, type ParsedCheckpoint } from './checkpoint.ts';

/** Damaged files of so many starts are kept. */
const MAX_KEPT = 20;
const NOTHING: ParsedCheckpoint = { grants: [], registered: new Map(), damaged: [] };

export class CheckpointFile {
  readonly path: string;
  readonly #file: StateFile;
  readonly #log: Logger;
  #isRead = false;
  /** Why the file is kept aside, until it is. */
  #damage: string | undefined;
  #unread = 'it was not read yet';

  constructor(path: string, content: () => string, log: Logger) {
    this.path = path;
    this.#file = new StateFile(path, content);
    this.#log = log;
  }

  get isRead(): boolean {
    return this.#isRead;
  }

  /** What an earlier run left, undefined when there is no file. Rejects while the file cannot be read. */
  async read(): Promise<ParsedCheckpoint | undefined> {
    const text = await this.#file.read().catch((err: unknown) => {
      this.#unread = messageOf(err);
      throw err;
    });
    this.#isRead = true;
    if (text === undefined) return undefined;
    const found = parsed(text);
    if (found.damaged.length > 0) await this.#damaged(found.damaged.join('; '));
    return found;
  }

  /** Throws while the file was not read: whose devices are in use is not known. */
  requireRead(): void {
    if (this.#isRead) return;
    const text = `${this.path} cannot be read, no device is given out until it can: ${this.#unread}`;
    throw new KubeletError('unavailable', text);
  }

  async save(): Promise<void> {
    this.requireRead();
    if (this.#damage !== undefined) await this.#keepAside(this.#damage);
    await this.#file.save();
  }

  async #damaged(damage: string): Promise<void> {
    this.#damage = damage;
    await this.#keepAside(damage).catch((err: unknown) =>
      this.#log.error('damaged device checkpoint cannot be kept aside, it is not overwritten', {
        path: this.path,
        err,
      }),
    );
  }

  /** A second name for the file: that needs no space, and the next save replaces only the first name. */
  async #keepAside(damage: string): Promise<void> {
    for (let i = 1; i <= MAX_KEPT; i++) {
      const aside = `${this.path}.damaged-${i}`;
      try {
        await link(this.path, aside);
      } catch (err) {
        if (errnoOf(err) === 'EEXIST') continue;
        if (errnoOf(err) !== 'ENOENT') throw err;
      }
      this.#log.error('device checkpoint is damaged, a copy is kept', { path: this.path, copy: aside, damage });
      this.#damage = undefined;
      return;
    }
    throw new KubeletError('exhausted', `remove ${this.path}.damaged-*: there are too many copies`);
  }
}

function parsed(text: string): ParsedCheckpoint {
  try {
    return parseCheckpoint(text);
  } catch (err) {
    return { ...NOTHING, damaged: [messageOf(err)] };
  }
}
