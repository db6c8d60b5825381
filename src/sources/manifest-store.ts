// Pods given to the kubelet's own server, kept as files so that they outlive it. One file a pod, named after it; the
// file is written before the pod exists and removed before it goes.
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { dns1123Label, dns1123Subdomain } from '../core/names.ts';
import type { Pod } from '../core/pod.ts';
import { aborted } from '../lib/abort.ts';
import { syncDirectory, writeFileAtomic } from '../lib/atomic-file.ts';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { Decoder } from './decoder.ts';
import { MAX_MANIFEST_BYTES, readManifestFile } from './file-entries.ts';
import { describeProblem, type FoundProblem } from './problem.ts';
import { readManifest } from './read-manifest.ts';

export type ManifestStoreDeps = {
  readonly log: Logger;
  readonly decoder: Decoder;
  readonly emit: (pods: readonly Pod[]) => void;
  readonly report: (problems: readonly FoundProblem[]) => void;
};
export type ManifestStoreOptions = {
  /** `<root>/manifests-api` */
  readonly directory: string;
  readonly nodeName: string;
  /** Pods may use ConfigMaps and Secrets of the local object store. */
  readonly localObjects: boolean;
  readonly syncDirectory?: typeof syncDirectory;
};

const MAX_PODS = 1000;
const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;
const EXTENSION = '.yaml';

type Entry = { readonly namespace: string; readonly name: string; readonly text: string; readonly pod: Pod };

export class ManifestStore implements Runnable {
  readonly name = 'manifest-store';
  readonly #deps: ManifestStoreDeps;
  readonly #opts: ManifestStoreOptions;
  readonly #sync: typeof syncDirectory;
  readonly #entries = new Map<string, Entry>();
  /** Files that could not be read when the store was loaded, by the key of their pod. */
  readonly #unread = new Map<string, string>();
  readonly #loaded = Promise.withResolvers<void>();
  /** Writes happen one after the other, so that files and memory agree. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(deps: ManifestStoreDeps, opts: ManifestStoreOptions) {
    this.#deps = deps;
    this.#opts = opts;
    this.#sync = opts.syncDirectory ?? syncDirectory;
  }

  async run(signal: AbortSignal): Promise<void> {
    await mkdir(this.#opts.directory, { recursive: true, mode: DIRECTORY_MODE });
    this.#deps.report(await this.#load(signal));
    this.#loaded.resolve();
    this.#emit();
    await aborted(signal);
    await this.#queue.catch(() => undefined);
  }

  /** Files of pods that may run and are not known. */
  get unread(): readonly string[] {
    return [...this.#unread.values()];
  }

  /** The pods as they run, with name suffix and defaults. */
  list(): readonly Pod[] {
    return [...this.#entries.values()].map((e) => e.pod);
  }

  /** What was put, word for word, and the pod made of it. */
  get(namespace: string, name: string): { readonly text: string; readonly pod: Pod } | undefined {
    return this.#entries.get(keyOf(namespace, name));
  }

  /** Creates or replaces a pod. Rejects with `invalid` and says every reason. */
  put(namespace: string, name: string, body: string, signal: AbortSignal): Promise<{ pod: Pod; created: boolean }> {
    return this.#inTurn(async () => {
      const pod = await this.#read(namespace, name, body, signal);
      const key = keyOf(namespace, name);
      const created = !this.#entries.has(key);
      if (created && this.#entries.size >= MAX_PODS)
        throw new KubeletError('exhausted', `there are ${MAX_PODS} manifests already`);
      const clash = [...this.#entries].find(([other, e]) => other !== key && e.pod.metadata.uid === pod.metadata.uid);
      if (clash !== undefined) throw new KubeletError('conflict', `manifest ${clash[0]} has the same metadata.uid`);
      await writeFileAtomic(this.#pathOf(namespace, name), body, FILE_MODE);
      this.#entries.set(key, { namespace, name, text: body, pod });
      this.#unread.delete(key);
      this.#emit();
      return { pod, created };
    });
  }

  /** Returns whether there was one. */
  delete(namespace: string, name: string): Promise<boolean> {
    return this.#inTurn(async () => {
      const key = keyOf(namespace, name);
      if (!this.#entries.has(key) && !this.#unread.has(key)) return false;
      await rm(this.#pathOf(namespace, name), { force: true });
      await this.#sync(this.#opts.directory);
      this.#entries.delete(key);
      this.#unread.delete(key);
      this.#emit();
      return true;
    });
  }

  #emit(): void {
    this.#deps.emit(this.list());
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#queue.then(() => this.#loaded.promise).then(work);
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  #pathOf(namespace: string, name: string): string {
    // Neither part can have a `_` or a `/`: both are checked before any path is made.
    return join(this.#opts.directory, `${namespace}_${name}${EXTENSION}`);
  }

  async #load(signal: AbortSignal): Promise<readonly FoundProblem[]> {
    const problems: FoundProblem[] = [];
    for (const file of (await readdir(this.#opts.directory)).sort()) {
      const [namespace = '', name = ''] = file.slice(0, -EXTENSION.length).split('_');
      if (!file.endsWith(EXTENSION) || name === '') continue;
      const where = join(this.#opts.directory, file);
      try {
        const content = await readManifestFile(where);
        if (content?.text === undefined) continue;
        const pod = await this.#read(namespace, name, content.text, signal);
        this.#entries.set(keyOf(namespace, name), { namespace, name, text: content.text, pod });
      } catch (err) {
        if (signal.aborted || errnoOf(err) === 'ENOSPC') throw err;
        this.#unread.set(keyOf(namespace, name), where);
        problems.push({ where, severity: 'error', message: messageOf(err) });
      }
    }
    return problems;
  }

  async #read(namespace: string, name: string, body: string, signal: AbortSignal): Promise<Pod> {
    if (dns1123Label(namespace).length > 0 || dns1123Subdomain(name).length > 0)
      throw new KubeletError('invalid', 'namespace and name must be valid names');
    if (Buffer.byteLength(body) > MAX_MANIFEST_BYTES)
      throw new KubeletError('invalid', `is larger than ${MAX_MANIFEST_BYTES / 1024 / 1024} MiB`);
    const origin = { where: `${namespace}/${name}`, local: true };
    const options = { nodeName: this.#opts.nodeName, localObjects: this.#opts.localObjects, lists: false };
    const contents = await readManifest(body, origin, options, this.#deps.decoder, signal);
    const errors = contents.problems.filter((p) => p.severity === 'error');
    if (errors.length > 0)
      throw new KubeletError('invalid', errors.map(describeProblem).join('\n'), { detail: { problems: errors } });
    const [pod, another] = contents.pods;
    const extra = another !== undefined || contents.configMaps.length > 0 || contents.secrets.length > 0;
    if (pod === undefined || extra) throw new KubeletError('invalid', 'must have exactly one Pod');
    const suffix = `-${this.#opts.nodeName.toLowerCase()}`;
    if (pod.metadata.namespace !== namespace || pod.metadata.name !== `${name}${suffix}`)
      throw new KubeletError(
        'invalid',
        `is of pod ${pod.metadata.namespace}/${pod.metadata.name.slice(0, -suffix.length)}, not ${namespace}/${name}`,
      );
    return pod;
  }
}

const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`;
