// Pods from a file or a directory. Changes are seen at once through a watch; a full rescan every `fileCheckFrequency`
// is the net below it. A file that is broken keeps its pods as they were last good, and is `unread` if it never was good; a
// file that is gone loses them, also when it is there again a moment later: people restart static pods that way.
import { watch, type FSWatcher } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { ConfigMap, Secret } from '../core/node.ts';
import { fullName, namespaceOf, podKey, type Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { AdoptedPods } from './adopt-static.ts';
import type { Decoder } from './decoder.ts';
import { isManifestName, listManifests, readManifestFile, type FileStamp, type Listing } from './file-entries.ts';
import type { FoundProblem } from './problem.ts';
import { readManifest, type ManifestContents } from './read-manifest.ts';
import { RecreatedNames } from './recreated-names.ts';

export type FileSourceDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly decoder: Decoder;
  /** Takes every full set. */
  readonly emit: (pods: readonly Pod[]) => void;
  readonly report: (problems: readonly FoundProblem[]) => void;
  /** Takes the ConfigMaps and Secrets beside the pods; their presence allows pods to use such. */
  readonly objects?: { set(configMaps: readonly ConfigMap[], secrets: readonly Secret[]): void };
  /** What runs: breaks the tie when two files name the same pod at start, and tells which pods to adopt. */
  readonly observed?: { all(): Iterable<PodSnapshot> };
};
export type FileSourceOptions = {
  readonly path: string;
  readonly nodeName: string;
  readonly rescanMs: number;
  /** Pods may name API objects. */
  readonly apiObjects?: boolean;
};

/** What a file last had. */
type FileState = {
  readonly stamp: FileStamp;
  readonly modifiedMs: number;
  readonly good: Omit<ManifestContents, 'problems'>;
  readonly problems: readonly FoundProblem[];
  /** It was never good: what its pods are is not known. */
  readonly isUnread: boolean;
};

const NOTHING = { pods: [], configMaps: [], secrets: [] } as const;
/** Editors write in several steps; one look after the last of them is enough. */
const SETTLE_MS = 10;
const SETTLE_MAX_MS = 100;
/** A file may be half written for this long before it counts as broken. */
const UNFINISHED_MS = 500;

export class FileSource implements Runnable {
  readonly name = 'file-source';
  readonly #deps: FileSourceDeps;
  readonly #opts: FileSourceOptions;
  #files = new Map<string, FileState>();
  /** Which file each pod name was taken from, so that a second file cannot take it over. */
  #owners = new Map<string, string>();
  readonly #ignored = new Set<string>();
  readonly #recreated = new RecreatedNames();
  #emitted: readonly Pod[] = [];
  #unread: readonly string[] | undefined;
  readonly #adopted: AdoptedPods;
  #watcher: { handle: FSWatcher; inode: string } | undefined;
  #wake: () => void = () => undefined;

  constructor(deps: FileSourceDeps, opts: FileSourceOptions) {
    this.#deps = deps;
    this.#opts = opts;
    this.#adopted = new AdoptedPods({ log: deps.log, observed: () => this.#observed() }, 'file');
  }

  /**
   * Files that were never good, from the first scan on until there is none: what runs may be theirs. One that comes later
   * has no pods that run.
   */
  get unread(): readonly string[] {
    return this.#unread ?? [];
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        // Armed before the scan: a change during the scan is a reason for another one.
        const woken = this.#nextWake(signal);
        const again = await this.#scan(signal);
        await woken(Math.min(this.#opts.rescanMs, again));
      }
    } finally {
      this.#unwatch();
    }
  }

  /** Returns how to wait for a change, for at most the given time. */
  #nextWake(signal: AbortSignal): (ms: number) => Promise<void> {
    const { clock } = this.#deps;
    let changed = false;
    let done: () => void = () => undefined;
    let settle: Timer | undefined;
    let firstAt = 0;
    this.#wake = () => {
      const now = clock.monotonic();
      if (!changed) firstAt = now;
      changed = true;
      settle?.cancel();
      settle = clock.after(Math.min(SETTLE_MS, firstAt + SETTLE_MAX_MS - now), () => done());
    };
    return (ms) =>
      new Promise<void>((resolve) => {
        const timer = clock.after(ms, () => done());
        done = () => {
          timer.cancel();
          settle?.cancel();
          signal.removeEventListener('abort', done);
          resolve();
        };
        if (signal.aborted) done();
        else signal.addEventListener('abort', done);
        if (changed) this.#wake();
      });
  }

  /** Reads what changed and sends the whole. Returns in how many milliseconds to look again at the latest. */
  async #scan(signal: AbortSignal): Promise<number> {
    const { path } = this.#opts;
    let listing: Listing;
    try {
      listing = await listManifests(path);
    } catch (err) {
      // Nothing is known about the pods now, so nothing is said about them.
      this.#deps.report([{ where: path, severity: 'error', message: `cannot be read: ${messageOf(err)}` }]);
      return this.#opts.rescanMs;
    }
    this.#watchPath(listing);
    this.#noteIgnored(listing.ignored);
    this.#dropRecreated();
    const files = new Map<string, FileState>();
    for (const file of listing.files) {
      const state = await this.#read(file, this.#files.get(file), signal);
      if (state !== undefined) files.set(file, state);
    }
    if (signal.aborted) return 0;
    this.#files = files;
    const mayBeUnread = this.#unread === undefined || this.#unread.length > 0;
    this.#unread = mayBeUnread ? [...files].flatMap(([file, { isUnread }]) => (isUnread ? [file] : [])) : [];
    return this.#publish();
  }

  /** The pods of a file that was away in between are gone for a moment, and their changes with them. */
  #dropRecreated(): void {
    const gone = new Set<Pod>();
    for (const name of this.#recreated.take()) {
      const file = this.#fileOf(name);
      for (const pod of this.#files.get(file ?? '')?.good.pods ?? []) gone.add(pod);
      if (file !== undefined) this.#files.delete(file);
    }
    if (this.#emitted.some((pod) => gone.has(pod))) this.#emit(this.#emitted.filter((pod) => !gone.has(pod)));
  }

  #fileOf(name: string): string | undefined {
    return [...this.#files.keys()].find((path) => basename(path) === name);
  }

  #emit(pods: readonly Pod[]): void {
    this.#emitted = pods;
    this.#deps.emit(pods);
  }

  async #read(file: string, known: FileState | undefined, signal: AbortSignal): Promise<FileState | undefined> {
    try {
      const content = await readManifestFile(file, known?.stamp);
      if (content === undefined) return undefined;
      const { stamp, modifiedMs, text } = content;
      if (text === undefined) return known;
      const options = {
        nodeName: this.#opts.nodeName,
        localObjects: this.#deps.objects !== undefined,
        lists: this.#deps.objects !== undefined,
        apiObjects: this.#opts.apiObjects ?? false,
      };
      const { problems, ...good } = await readManifest(
        text,
        { where: file, local: true },
        options,
        this.#deps.decoder,
        signal,
      );
      if (!problems.some((p) => p.severity === 'error')) {
        const pods = good.pods.map((pod) => this.#adopted.adopt(pod, modifiedMs));
        return { stamp, modifiedMs, good: { ...good, pods }, problems, isUnread: false };
      }
      return { stamp, modifiedMs, ...lastGood(problems, known) };
    } catch (err) {
      if (signal.aborted) return known;
      const problem: FoundProblem = { where: file, severity: 'error', message: messageOf(err) };
      // Since when it cannot be read: it may be about to be finished, but not for ever.
      const modifiedMs = known?.stamp === '' ? known.modifiedMs : this.#deps.clock.now();
      return { stamp: '', modifiedMs, ...lastGood([problem], known) };
    }
  }

  #observed(): Iterable<PodSnapshot> {
    return this.#deps.observed?.all() ?? [];
  }

  #publish(): number {
    const now = this.#deps.clock.now();
    const problems: FoundProblem[] = [];
    let again = Infinity;
    for (const state of this.#files.values()) {
      const age = now - state.modifiedMs;
      if (state.problems.length > 0 && age >= 0 && age < UNFINISHED_MS) again = Math.min(again, UNFINISHED_MS - age);
      else problems.push(...state.problems);
    }
    const states = [...this.#files.entries()];
    const chosen = this.#choose(states, problems);
    this.#deps.objects?.set(
      states.flatMap(([, s]) => s.good.configMaps),
      states.flatMap(([, s]) => s.good.secrets),
    );
    this.#deps.report(problems);
    this.#emit(chosen);
    return again;
  }

  /** One file for each pod: the one that has it already, then the one whose pod runs, then the first by name. */
  #choose(states: readonly (readonly [string, FileState])[], problems: FoundProblem[]): readonly Pod[] {
    const claims = new Map<string, { file: string; pod: Pod }[]>();
    for (const [file, state] of states)
      for (const pod of state.good.pods) {
        const list = claims.get(fullName(pod)) ?? [];
        list.push({ file, pod });
        claims.set(fullName(pod), list);
      }
    const running = new Set<string>([...this.#observed()].map((s) => s.uid));
    const owners = new Map<string, string>();
    const chosen: Pod[] = [];
    for (const [name, list] of claims) {
      const owner = this.#owners.get(name);
      const winner =
        list.find((c) => c.file === owner) ?? list.find((c) => running.has(c.pod.metadata.uid ?? '')) ?? list[0];
      if (winner === undefined) continue;
      owners.set(name, winner.file);
      chosen.push(winner.pod);
      for (const loser of list) if (loser !== winner) problems.push(conflict(loser.file, loser.pod, winner.file));
    }
    this.#owners = owners;
    return this.#withoutSharedUids(chosen, problems);
  }

  #withoutSharedUids(pods: readonly Pod[], problems: FoundProblem[]): readonly Pod[] {
    const byUid = new Map<string, Pod>();
    for (const pod of pods) {
      const uid = pod.metadata.uid ?? '';
      const other = byUid.get(uid);
      if (other === undefined) byUid.set(uid, pod);
      else
        problems.push({
          where: this.#owners.get(fullName(pod)) ?? this.#opts.path,
          severity: 'error',
          field: 'metadata.uid',
          message: `metadata.uid: Duplicate value: pod ${podKey(other)} has the same uid; this one is left out`,
        });
    }
    return [...byUid.values()];
  }

  #noteIgnored(names: readonly string[]): void {
    for (const name of names)
      if (!this.#ignored.has(name)) {
        this.#ignored.add(name);
        this.#deps.log.info('file is no manifest: only .yaml, .yml and .json are read', {
          directory: this.#opts.path,
          file: name,
        });
      }
    for (const name of this.#ignored) if (!names.includes(name)) this.#ignored.delete(name);
  }

  /** Watches the directory, or the directory of a single file, as long as it is the same one. */
  #watchPath(listing: Listing): void {
    const { path } = this.#opts;
    const inode = listing.isDirectory ? listing.inode : dirname(path);
    if (this.#watcher?.inode === inode) return;
    this.#unwatch();
    const target = listing.isDirectory ? path : dirname(path);
    const only = listing.isDirectory ? undefined : basename(path);
    try {
      const handle = watch(target, { persistent: false }, (event, name) => {
        if (event === 'rename' && name !== null)
          this.#recreated.renamed(name, this.#deps.clock.monotonic(), this.#fileOf(name) !== undefined);
        else this.#recreated.changed();
        if (name === null || name === only || (only === undefined && (event === 'rename' || isManifestName(name))))
          this.#wake();
      });
      handle.on('error', () => this.#unwatch());
      this.#watcher = { handle, inode };
    } catch (err) {
      // Not there yet, or no watches left: the rescan finds the changes.
      this.#deps.log.debug('manifests are not watched', { path: target, err });
    }
  }

  #unwatch(): void {
    this.#watcher?.handle.close();
    this.#watcher = undefined;
  }
}

/** A broken file is what it was before. */
function lastGood(
  problems: readonly FoundProblem[],
  { good, isUnread }: Pick<FileState, 'good' | 'isUnread'> = { good: NOTHING, isUnread: true },
): Pick<FileState, 'good' | 'problems' | 'isUnread'> {
  const stays = (p: FoundProblem): FoundProblem => ({
    ...p,
    message: `${p.message} (the last good version stays in effect)`,
  });
  return { good, problems: good.pods.length === 0 ? problems : problems.map(stays), isUnread };
}

const conflict = (file: string, pod: Pod, owner: string): FoundProblem => ({
  where: file,
  severity: 'error',
  field: 'metadata.name',
  message: `pod ${namespaceOf(pod)}/${pod.metadata.name} is already defined in ${owner}; this file is left out`,
});
