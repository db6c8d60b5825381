// One file of the checkpoint: what is known of one kind of thing, by key. Held in memory, written as a whole.
// It may hold secrets: it is readable by root only, and what is in it never reaches a log.
import { readFile } from 'node:fs/promises';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import { errnoOf, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';

export type CheckpointFileOptions<T> = {
  path: string;
  nodeName: string;
  /** Two items with the same text are the same: nothing needs to be written for the second. */
  versionOf: (item: T) => string;
  /** Whether what was read can be one: everybody believes the type. */
  isItem: (item: object) => boolean;
  /** What of an item is worth writing. */
  toStored?: (item: T) => object;
  onChange: () => void;
};

type Content = { readonly version: 1; readonly node: string; readonly items: readonly (readonly [string, unknown])[] };

export class CheckpointFile<T extends object> {
  readonly #log: Logger;
  readonly #o: CheckpointFileOptions<T>;
  #items = new Map<string, T>();
  #isKnown = false;
  #isDirty = false;

  constructor(log: Logger, options: CheckpointFileOptions<T>) {
    this.#log = log;
    this.#o = options;
  }

  /** Whether anything was ever said about these, be it that there are none. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  get(key: string): T | undefined {
    return this.#items.get(key);
  }

  values(): T[] {
    return [...this.#items.values()];
  }

  set(key: string, item: T): void {
    const before = this.#items.get(key);
    this.#items.set(key, item);
    if (before === undefined || this.#o.versionOf(before) !== this.#o.versionOf(item)) this.#changed();
  }

  delete(key: string): void {
    if (this.#items.delete(key)) this.#changed();
  }

  /** These and no others. */
  replace(items: Iterable<readonly [string, T]>): void {
    const before = this.#items;
    this.#items = new Map(items);
    const isSame =
      this.#isKnown &&
      before.size === this.#items.size &&
      [...this.#items].every(([key, item]) => {
        const old = before.get(key);
        return old !== undefined && this.#o.versionOf(old) === this.#o.versionOf(item);
      });
    if (!isSame) this.#changed();
  }

  retain(isWanted: (key: string, item: T) => boolean): void {
    for (const [key, item] of this.#items) if (!isWanted(key, item)) this.delete(key);
  }

  /** Takes over what an earlier run wrote. A file that cannot be used is named and passed over. */
  async load(): Promise<void> {
    const { path, nodeName } = this.#o;
    try {
      const content = JSON.parse(await readFile(path, 'utf8')) as Content;
      if (content.version !== 1 || content.node !== nodeName)
        throw new KubeletError('invalid', 'it is of another node or version');
      if (!Array.isArray(content.items) || !content.items.every(isEntry))
        throw new KubeletError('invalid', 'its content is not what it should be');
      const items = content.items as [string, T][];
      const damaged = items.filter(([, item]) => !this.#o.isItem(item)).map(([key]) => key);
      if (damaged.length > 0)
        this.#log.warn('items of a checkpoint file cannot be used, leaving them out', { path, items: damaged.join() });
      this.#items = new Map(items.filter(([key]) => !damaged.includes(key)));
      this.#isKnown = true;
    } catch (err) {
      // The text of a parse error quotes the file.
      const why = err instanceof SyntaxError ? 'it is damaged' : err;
      if (errnoOf(err) !== 'ENOENT') this.#log.warn('checkpoint file cannot be used, ignoring it', { path, err: why });
    }
  }

  async write(): Promise<void> {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    const { path, nodeName, toStored = (item) => item } = this.#o;
    const items = [...this.#items].map(([key, item]) => [key, toStored(item)] as const);
    const content: Content = { version: 1, node: nodeName, items };
    try {
      await writeFileAtomic(path, JSON.stringify(content), 0o600);
    } catch (err) {
      this.#isDirty = true;
      this.#log.error('could not write a checkpoint file', { path, err });
    }
  }

  #changed(): void {
    this.#isKnown = true;
    this.#isDirty = true;
    this.#o.onChange();
  }
}

const isEntry = (entry: unknown): boolean =>
  Array.isArray(entry) && typeof entry[0] === 'string' && typeof entry[1] === 'object' && entry[1] !== null;
