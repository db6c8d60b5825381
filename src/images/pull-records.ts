// What this kubelet pulled and with whose credentials, kept over restarts below `<root>/image_manager`: an intent while
// a pull runs, a record when it ended well. The files are those of the Go kubelet.
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { apiTime } from '../core/time.ts';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { mergeAccess, type AccessMap, type ImageAccess } from './access.ts';

export type PulledRecord = {
  readonly lastUpdatedTime: string;
  readonly imageRef: string;
  readonly credentialMapping: AccessMap;
};

const API_VERSION = 'kubelet.config.k8s.io/v1beta1';
/** Stamps have whole seconds. */
const STAMP_MS = 1000;
const FILE_NAME = /^sha256-[0-9a-f]{64}$/;

const fileName = (key: string): string => `sha256-${createHash('sha256').update(key).digest('hex')}`;

export class PullRecords {
  readonly #deps: { readonly clock: Clock; readonly log: Logger };
  readonly #pulling: string;
  readonly #pulled: string;
  readonly #intents = new Map<string, number>();
  /** Images an earlier kubelet was pulling and that are not there yet. */
  readonly #interrupted = new Set<string>();
  readonly #records = new Map<string, PulledRecord>();
  /** Files that cannot be understood, with their directory: a kubelet pulled their image, with whose credentials is not known. */
  readonly #unreadable = new Map<string, string>();

  constructor(deps: { readonly clock: Clock; readonly log: Logger }, rootDir: string) {
    this.#deps = deps;
    this.#pulling = join(rootDir, 'image_manager', 'pulling');
    this.#pulled = join(rootDir, 'image_manager', 'pulled');
  }

  get intents(): number {
    return new Set([...this.#intents.keys(), ...this.#interrupted]).size;
  }

  get records(): number {
    return this.#records.size;
  }

  /**
   * Reads what an earlier kubelet left. A pull it had begun may have ended well: such an image counts as pulled by us,
   * with nobody's credentials, so that whoever wants it next has to show some. `resolve` asks the runtime for an image.
   */
  async load(resolve: (image: string) => Promise<string | undefined>): Promise<void> {
    for (const dir of [this.#pulling, this.#pulled]) await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const record of await this.#readAll(this.#pulled, pulledOf)) this.#records.set(record.imageRef, record);
    for (const image of await this.#readAll(this.#pulling, intentOf)) {
      const imageRef = await resolve(image);
      if (imageRef === undefined) {
        this.#interrupted.add(image);
        continue;
      }
      if (!this.#records.has(imageRef)) await this.#write(imageRef, {});
      await this.#removeIntent(image);
    }
  }

  recordOf(imageRef: string): PulledRecord | undefined {
    return this.#records.get(imageRef);
  }

  /** Whether this kubelet pulled it, or is about to. */
  ours(image: string, imageRef: string): boolean {
    if (this.#records.has(imageRef) || this.#intents.has(image) || this.#interrupted.has(image)) return true;
    return this.#unreadable.size > 0 && [image, imageRef].some((key) => this.#unreadable.has(fileName(key)));
  }

  async begin(image: string): Promise<void> {
    const running = this.#intents.get(image) ?? 0;
    this.#intents.set(image, running + 1);
    if (running > 0) return;
    const intent = { kind: 'ImagePullIntent', apiVersion: API_VERSION, image };
    try {
      await writeFileAtomic(join(this.#pulling, fileName(image)), JSON.stringify(intent), 0o600);
    } catch (err) {
      this.#ended(image);
      throw err;
    }
  }

  async failed(image: string): Promise<void> {
    if (this.#ended(image)) await this.#removeIntent(image);
  }

  /** The record first: if it cannot be written the intent stays, and the image counts as ours all the same. */
  async succeeded(image: string, imageRef: string, repository: string, access: ImageAccess): Promise<void> {
    await this.allow(imageRef, repository, access);
    if (this.#ended(image)) await this.#removeIntent(image);
  }

  async allow(imageRef: string, repository: string, access: ImageAccess): Promise<void> {
    const known = this.#records.get(imageRef)?.credentialMapping ?? {};
    const merged = mergeAccess(known[repository], access);
    if (JSON.stringify(merged) === JSON.stringify(known[repository])) return;
    await this.#write(imageRef, { ...known, [repository]: merged });
  }

  /** Forgets images that are gone, unless their record is younger than the list of images. */
  async prune(presentRefs: ReadonlySet<string>, listedAtMs: number): Promise<void> {
    for (const { imageRef, lastUpdatedTime } of this.#records.values()) {
      if (presentRefs.has(imageRef) || Date.parse(lastUpdatedTime) + STAMP_MS > listedAtMs) continue;
      await rm(join(this.#pulled, fileName(imageRef)), { force: true });
      this.#records.delete(imageRef);
    }
    const present = new Set([...presentRefs].map(fileName));
    for (const [name, dir] of this.#unreadable) {
      if (dir !== this.#pulled || present.has(name)) continue;
      await rm(join(dir, name), { force: true });
      this.#unreadable.delete(name);
    }
  }

  /** True when this was the last pull of the image under way. */
  #ended(image: string): boolean {
    const running = this.#intents.get(image) ?? 0;
    if (running > 1) this.#intents.set(image, running - 1);
    else this.#intents.delete(image);
    return running === 1;
  }

  async #removeIntent(image: string): Promise<void> {
    this.#interrupted.delete(image);
    await rm(join(this.#pulling, fileName(image)), { force: true });
    this.#unreadable.delete(fileName(image));
  }

  async #write(imageRef: string, credentialMapping: AccessMap): Promise<void> {
    const record = { lastUpdatedTime: apiTime(this.#deps.clock.now()), imageRef, credentialMapping };
    const file = { kind: 'ImagePulledRecord', apiVersion: API_VERSION, ...record };
    await writeFileAtomic(join(this.#pulled, fileName(imageRef)), JSON.stringify(file), 0o600);
    this.#records.set(imageRef, record);
    this.#unreadable.delete(fileName(imageRef));
  }

  /** The image of a file that cannot be read is no preloaded one: credentials are asked for again. */
  async #readAll<T>(dir: string, parse: (content: unknown, name: string) => T): Promise<T[]> {
    const found: T[] = [];
    for (const name of await readdir(dir)) {
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
