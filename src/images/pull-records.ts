// What this kubelet pulled and with whose credentials, kept over restarts below `<root>/image_manager`: an intent while
// a pull runs, a record when it ended well. The files are those of the Go kubelet.
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { apiTime } from '../core/time.ts';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { mergeAccess, type AccessMap, type ImageAccess } from './access.ts';

export type PulledRecord = {
  readonly lastUpdatedTime: string;
  readonly imageRef: string;
  readonly credentialMapping: AccessMap;
};

const DIRECTORY_MODE = 0o700;
const API_VERSION = 'kubelet.config.k8s.io/v1beta1';
/** Stamps have whole seconds. */
const STAMP_MS = 1000;
const FILE_NAME = /^sha256-[0-9a-f]{64}$/;

const fileName = (key: string): string => `sha256-${createHash('sha256').update(key).digest('hex')}`;

/**
 * INVARIANTS:
 * - Records in memory count, whether or not their files could be written.
 * - The intent of a pull stays on disk until the record of its image is there: a kubelet that starts meanwhile knows of the pull.
 * - Only `begin` rejects: nothing is pulled without an intent on disk.
 */
export class PullRecords {
  readonly #deps: { readonly clock: Clock; readonly log: Logger };
  readonly #pulling: string;
  readonly #pulled: string;
  readonly #intents = new Map<string, number>();
  /** Images an earlier kubelet was pulling and that are not there yet. */
  readonly #interrupted = new Set<string>();
  readonly #records = new Map<string, PulledRecord>();
  /** Image refs whose record is not on disk as it is in memory. */
  readonly #unwritten = new Set<string>();
  /** Images whose pull has ended while its record is unwritten, with their refs: their intents stay on disk. */
  readonly #unrecorded = new Map<string, string>();
  /** Files that cannot be understood, with their directory: a kubelet pulled their image, with whose credentials is not known. */
  readonly #unreadable = new Map<string, string>();
  /** A directory cannot be read: any image may have been pulled by a kubelet. */
  #isUnknown = false;

  constructor(deps: { readonly clock: Clock; readonly log: Logger }, rootDir: string) {
    this.#deps = deps;
    this.#pulling = join(rootDir, 'image_manager', 'pulling');
    this.#pulled = join(rootDir, 'image_manager', 'pulled');
  }

  get intents(): number {
    return new Set([...this.#intents.keys(), ...this.#interrupted, ...this.#unrecorded.keys()]).size;
  }

  get records(): number {
    return this.#records.size;
  }

  /**
   * Reads what an earlier kubelet left. A pull it had begun may have ended well: such an image counts as pulled by us,
   * with nobody's credentials, so that whoever wants it next has to show some. `resolve` asks the runtime for an image.
   */
  async load(resolve: (image: string) => Promise<string | undefined>): Promise<void> {
    for (const dir of [this.#pulling, this.#pulled])
      await this.#tried(dir, () => mkdir(dir, { recursive: true, mode: DIRECTORY_MODE }));
    for (const record of await this.#readAll(this.#pulled, pulledOf)) this.#records.set(record.imageRef, record);
    for (const image of await this.#readAll(this.#pulling, intentOf)) {
      const imageRef = await resolve(image);
      if (imageRef === undefined) {
        this.#interrupted.add(image);
        continue;
      }
      if (!this.#records.has(imageRef)) await this.#put(imageRef, {});
      await this.#settle(image, imageRef);
    }
  }

  recordOf(imageRef: string): PulledRecord | undefined {
    return this.#records.get(imageRef);
  }

  /** Whether this kubelet pulled it, or is about to. */
  ours(image: string, imageRef: string): boolean {
    if (this.#isUnknown || this.#records.has(imageRef)) return true;
    if (this.#intents.has(image) || this.#interrupted.has(image)) return true;
    return this.#unreadable.size > 0 && [image, imageRef].some((key) => this.#unreadable.has(fileName(key)));
  }

  /** Rejects when the intent cannot be written. */
  async begin(image: string): Promise<void> {
    const running = this.#intents.get(image) ?? 0;
    this.#intents.set(image, running + 1);
    if (running > 0) return;
    const path = join(this.#pulling, fileName(image));
    try {
      await writeRecord(path, { kind: 'ImagePullIntent', apiVersion: API_VERSION, image });
    } catch (err) {
      this.#ended(image);
      throw new KubeletError('unavailable', `${path} was not written: ${messageOf(err)}`, { cause: err });
    }
  }

  async failed(image: string): Promise<void> {
    if (this.#ended(image) && !this.#unrecorded.has(image)) await this.#removeIntent(image);
  }

  async succeeded(image: string, imageRef: string, repository: string, access: ImageAccess): Promise<void> {
    await this.allow(imageRef, repository, access);
    if (this.#ended(image)) await this.#settle(image, imageRef);
  }

  async allow(imageRef: string, repository: string, access: ImageAccess): Promise<void> {
    const known = this.#records.get(imageRef)?.credentialMapping ?? {};
    const merged = mergeAccess(known[repository], access);
    if (JSON.stringify(merged) === JSON.stringify(known[repository])) return;
    await this.#put(imageRef, { ...known, [repository]: merged });
  }

  /** Drops images that are gone, unless their record is younger than the list of images, and writes what is unwritten. */
  async prune(presentRefs: ReadonlySet<string>, listedAtMs: number): Promise<void> {
    for (const record of this.#records.values())
      if (!presentRefs.has(record.imageRef) && Date.parse(record.lastUpdatedTime) + STAMP_MS <= listedAtMs)
        await this.#drop(record);
    const present = new Set(this.#unreadable.size === 0 ? [] : [...presentRefs].map(fileName));
    for (const [name, dir] of this.#unreadable)
      if (dir === this.#pulled && !present.has(name) && (await this.#remove(join(dir, name))))
        this.#unreadable.delete(name);
    const unwritten = [...this.#unwritten];
    for (const imageRef of unwritten) await this.#store(imageRef);
    for (const [image, imageRef] of this.#unrecorded)
      if (!this.#intents.has(image)) await this.#settle(image, imageRef);
  }

  async #drop(record: PulledRecord): Promise<void> {
    const { imageRef } = record;
    if (!(await this.#remove(join(this.#pulled, fileName(imageRef))))) return;
    // The image was pulled again meanwhile: its new file may have gone.
    if (this.#records.get(imageRef) !== record) return this.#store(imageRef);
    this.#records.delete(imageRef);
    this.#unwritten.delete(imageRef);
  }

  /** True when this was the last pull of the image under way. */
  #ended(image: string): boolean {
    const running = this.#intents.get(image) ?? 0;
    if (running > 1) this.#intents.set(image, running - 1);
    else this.#intents.delete(image);
    return running === 1;
  }

  /** The intent goes once the record is on disk, or the image and its record are gone. */
  async #settle(image: string, imageRef: string): Promise<void> {
    if (this.#unwritten.has(imageRef)) this.#unrecorded.set(image, imageRef);
    else await this.#removeIntent(image);
  }

  async #removeIntent(image: string): Promise<void> {
    this.#interrupted.delete(image);
    if (!(await this.#remove(join(this.#pulling, fileName(image))))) return;
    this.#unrecorded.delete(image);
    this.#unreadable.delete(fileName(image));
  }

  async #put(imageRef: string, credentialMapping: AccessMap): Promise<void> {
    this.#records.set(imageRef, {
      lastUpdatedTime: apiTime(this.#deps.clock.now()),
      imageRef,
      credentialMapping,
    });
    await this.#store(imageRef);
  }

  /** Writes until the file is what memory has: records change while they are written. */
  async #store(imageRef: string): Promise<void> {
    this.#unwritten.add(imageRef);
    const path = join(this.#pulled, fileName(imageRef));
    const isStored = await this.#tried(path, async () => {
      let written: PulledRecord | undefined;
      for (;;) {
        const record = this.#records.get(imageRef);
        if (record === undefined || record === written) return;
        await writeRecord(path, { kind: 'ImagePulledRecord', apiVersion: API_VERSION, ...record });
        written = record;
      }
    });
    if (!isStored) return;
    this.#unwritten.delete(imageRef);
    this.#unreadable.delete(fileName(imageRef));
  }

  #remove(path: string): Promise<boolean> {
    return this.#tried(path, () => rm(path, { force: true }));
  }

  /** False, and a message, when it failed. */
  async #tried(path: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (err) {
      this.#deps.log.error('image pull records cannot be changed, trying again later', { path, err });
      return false;
    }
  }

  /** The image of a file that cannot be read is no preloaded one: credentials are asked for again. */
  async #readAll<T>(dir: string, parse: (content: unknown, name: string) => T): Promise<T[]> {
    const found: T[] = [];
    for (const name of await this.#namesIn(dir)) {
      if (!FILE_NAME.test(name)) continue;
      try {
        found.push(parse(JSON.parse(await readFile(join(dir, name), 'utf8')), name));
      } catch (err) {
        this.#unreadable.set(name, dir);
        this.#deps.log.warn('image pull record cannot be read', { path: join(dir, name), errno: errnoOf(err), err });
      }
    }
    return found;
  }

  async #namesIn(dir: string): Promise<readonly string[]> {
    try {
      return await readdir(dir);
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') return [];
      this.#isUnknown = true;
      this.#deps.log.error('image pull records cannot be read, credentials are asked for every image', {
        path: dir,
        err,
      });
      return [];
    }
  }
}

/** The directory may not be there yet: a full disk had no room for it. */
async function writeRecord(path: string, content: object): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: DIRECTORY_MODE });
  await writeFileAtomic(path, JSON.stringify(content), 0o600);
}

function pulledOf(content: unknown, name: string): PulledRecord {
  const { imageRef, credentialMapping, lastUpdatedTime } = recordOf(content, 'the content');
  if (typeof imageRef !== 'string' || fileName(imageRef) !== name)
    throw damaged('imageRef is not what the file is named by');
  return {
    imageRef,
    lastUpdatedTime: typeof lastUpdatedTime === 'string' ? lastUpdatedTime : apiTime(0),
    credentialMapping: accessMapOf(credentialMapping ?? {}),
  };
}

function intentOf(content: unknown, name: string): string {
  const { image } = recordOf(content, 'the content');
  if (typeof image !== 'string' || fileName(image) !== name) throw damaged('image is not what the file is named by');
  return image;
}

function accessMapOf(value: unknown): AccessMap {
  const map = recordOf(value, 'credentialMapping');
  for (const [repository, access] of Object.entries(map)) {
    const { kubernetesSecrets, kubernetesServiceAccounts } = recordOf(access, repository);
    for (const list of [kubernetesSecrets ?? [], kubernetesServiceAccounts ?? []]) {
      if (!Array.isArray(list)) throw damaged(`a list of ${repository} is none`);
      for (const item of list) recordOf(item, `an item of ${repository}`);
    }
  }
  return map as AccessMap;
}

function recordOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw damaged(`${what} is no object`);
  return value as Record<string, unknown>;
}

const damaged = (why: string): KubeletError => new KubeletError('invalid', why);
