// The volumes on disk: `<data>/<id>/volume.json` beside `image`, a sparse file of the volume's size, or the directory
// `files`. What is damaged or half made is not a volume; the provisioner asks again and gets a new one.
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../lib/atomic-file.ts';

export type Backing = 'image' | 'directory';

export type StoredVolume = {
  readonly id: string;
  /** What the provisioner called it; asking twice by the same name gives the same volume. */
  readonly name: string;
  readonly bytes: number;
  readonly access: 'mount' | 'block';
  /** Whether it is an image of its size or a directory that only remembers its size. */
  readonly backing: Backing;
  /** Made for one pod by its publish call, gone with the unpublish call. */
  readonly ephemeral: boolean;
  readonly publishedTo: readonly string[];
};

const isVolume = (value: unknown): value is StoredVolume => {
  const v = value as Partial<StoredVolume> | null;
  return (
    typeof v === 'object' &&
    v !== null &&
    typeof v.id === 'string' &&
    typeof v.name === 'string' &&
    typeof v.bytes === 'number' &&
    (v.access === 'mount' || v.access === 'block') &&
    (v.backing === 'image' || v.backing === 'directory') &&
    Array.isArray(v.publishedTo)
  );
};

const byName = (a: string, b: string): number => (a < b ? -1 : 1);

/** Ids become directory names: nothing else than these characters. */
const isId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id);

export class VolumeStore {
  readonly #directory: string;
  readonly #busy = new Map<string, Promise<unknown>>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  imageOf(id: string): string {
    return join(this.#directory, id, 'image');
  }

  filesOf(id: string): string {
    return join(this.#directory, id, 'files');
  }

  /** Runs `work` when no other work on the same key is under way. */
  async exclusive<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#busy.get(key) ?? Promise.resolve();
    const run = before.then(work, work);
    const settled = run.then(
      () => undefined,
      () => undefined,
    );
    this.#busy.set(key, settled);
    try {
      return await run;
    } finally {
      if (this.#busy.get(key) === settled) this.#busy.delete(key);
    }
  }

  async get(id: string): Promise<StoredVolume | undefined> {
    if (!isId(id)) return undefined;
    try {
      const value: unknown = JSON.parse(await readFile(join(this.#directory, id, 'volume.json'), 'utf8'));
      return isVolume(value) && value.id === id ? value : undefined;
    } catch {
      // Absent or damaged: either way there is no such volume.
      return undefined;
    }
  }

  async list(): Promise<readonly StoredVolume[]> {
    const names = await readdir(this.#directory).catch(() => []);
    const found = await Promise.all(names.toSorted(byName).map((name) => this.get(name)));
    return found.filter((v) => v !== undefined);
  }

  async create(volume: Omit<StoredVolume, 'id' | 'publishedTo'>, id: string = randomUUID()): Promise<StoredVolume> {
    const made: StoredVolume = { ...volume, id, publishedTo: [] };
    await mkdir(join(this.#directory, id), { recursive: true, mode: 0o700 });
    if (volume.backing === 'directory') await mkdir(this.filesOf(id), { recursive: true, mode: 0o755 });
    else await makeImage(this.imageOf(id), volume.bytes);
    return this.#save(made);
  }

  /** Grows the volume and says so; it never shrinks. */
  async grow(volume: StoredVolume, bytes: number): Promise<StoredVolume> {
    if (bytes <= volume.bytes) return volume;
    if (volume.backing === 'image') await truncate(this.imageOf(volume.id), bytes);
    return this.#save({ ...volume, bytes });
  }

  setPublished(volume: StoredVolume, nodes: readonly string[]): Promise<StoredVolume> {
    return this.#save({ ...volume, publishedTo: nodes });
  }

  async remove(id: string): Promise<void> {
    if (isId(id)) await rm(join(this.#directory, id), { recursive: true, force: true });
  }

  async #save(volume: StoredVolume): Promise<StoredVolume> {
    await writeFileAtomic(join(this.#directory, volume.id, 'volume.json'), `${JSON.stringify(volume)}\n`, 0o600);
    return volume;
  }
}

async function makeImage(path: string, bytes: number): Promise<void> {
  const image = await open(path, 'a', 0o600);
  try {
    await image.truncate(bytes);
  } finally {
    await image.close();
  }
}
