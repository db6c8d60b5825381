// What happened on this node, kept on disk in two files of bounded size, so that it is still there after the agent has
// been restarted. Woken by what happens; writes are gathered for a moment and never waited for.
import { appendFile, mkdir, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { PodUid } from '../core/ids.ts';
import type { KubeEvent } from '../core/node.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { aborted } from '../lib/abort.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { errnoOf } from '../lib/errors.ts';
import { Lru } from '../lib/lru.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { TimelineEntry } from './model.ts';
import { entriesOfChange, entryOfEvent, type NewEntry } from './timeline-entries.ts';

export type TimelineDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** Appends to a file; a test puts a slow disk in its place. */
  readonly append?: (file: string, text: string) => Promise<void>;
};
export type TimelineOptions = { readonly directory: string; readonly maxFileBytes?: number; readonly keep?: number };

const MAX_FILE_BYTES = 512 * 1024;
const KEEP = 2000;
const GATHER_MS = 1000;
const REPEAT_MS = 5 * 60_000;
const REPEAT_CHARS = 60;
const CURRENT = 'timeline.jsonl';
const OLDER = 'timeline.1.jsonl';

/**
 * INVARIANTS:
 * - At most one write is under way. Entries that come meanwhile wait for the next one.
 * - At most `keep` entries are in memory, and at most `keep` wait to be written: the oldest ones go first.
 */
export class Timeline implements Runnable {
  readonly name = 'timeline';
  readonly #deps: Required<TimelineDeps>;
  readonly #o: Required<TimelineOptions>;
  readonly #seen = new Map<PodUid, PodSnapshot>();
  readonly #told = new Lru<string, number>(KEEP);
  readonly #listeners = new Set<() => void>();
  #entries: TimelineEntry[] = [];
  #unwritten: TimelineEntry[] = [];
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;
  #nextId = 1;
  /** Between the end of loading and the stop. */
  #writes = false;
  #isRuntimeReady: boolean | undefined;

  constructor(deps: TimelineDeps, options: TimelineOptions) {
    this.#deps = { append: (file, text) => appendFile(file, text, { mode: 0o600 }), ...deps };
    this.#o = { maxFileBytes: MAX_FILE_BYTES, keep: KEEP, ...options };
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#load();
    this.#writes = true;
    this.#later();
    await aborted(signal);
    this.#writes = false;
    this.#timer?.cancel();
    await this.#writing;
    await this.#write();
  }

  /** Oldest first, those after `id`. */
  entries(after = 0): readonly TimelineEntry[] {
    return after === 0 ? this.#entries : this.#entries.filter((e) => e.id > after);
  }

  onEntry(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  event(event: KubeEvent): void {
    const entry = entryOfEvent(event, this.#deps.clock.now());
    if (entry !== undefined) this.#add(entry);
  }

  /** A pod was read anew. What was so before this agent began to look is not news. */
  observed(uid: PodUid, snapshot: PodSnapshot | undefined, isFirstLook: boolean): void {
    const before = this.#seen.get(uid);
    if (snapshot === undefined) this.#seen.delete(uid);
    else this.#seen.set(uid, snapshot);
    if (!isFirstLook) for (const entry of entriesOfChange(before, snapshot)) this.#add(entry);
  }

  /** That it does not answer is news once it has, that it answers once it has not. */
  runtime(isReady: boolean, why: string): void {
    const before = this.#isRuntimeReady;
    if (isReady === before || (before === undefined && !isReady)) return;
    this.#isRuntimeReady = isReady;
    if (before === undefined) return;
    const text = isReady ? 'The container runtime answers' : `The container runtime does not answer: ${why}`;
    this.#add({ atMs: this.#deps.clock.now(), kind: 'runtime', tone: isReady ? 'ok' : 'bad', text });
  }

  #add(entry: NewEntry): void {
    if (this.#isRepeat(entry)) return;
    const numbered = { id: this.#nextId++, ...entry };
    for (const kept of [this.#entries, this.#unwritten]) {
      kept.push(numbered);
      if (kept.length > this.#o.keep) kept.splice(0, kept.length - this.#o.keep);
    }
    this.#later();
    for (const listener of this.#listeners) listener();
  }

  /** A probe that goes on failing, a mount that is tried again: told once in a while. */
  #isRepeat({ kind, pod, container, text, atMs }: NewEntry): boolean {
    if (kind !== 'probe' && kind !== 'other') return false;
    const key = `${pod ?? ''} ${container ?? ''} ${text.slice(0, REPEAT_CHARS)}`;
    const before = this.#told.get(key);
    if (before !== undefined && atMs - before < REPEAT_MS) return true;
    this.#told.set(key, atMs);
    return false;
  }

  #later(): void {
    if (!this.#writes || this.#writing !== undefined || this.#unwritten.length === 0) return;
    this.#timer ??= this.#deps.clock.after(GATHER_MS, () => {
      this.#timer = undefined;
      void this.#write();
    });
  }

  async #write(): Promise<void> {
    const lines = this.#unwritten.splice(0).map((entry) => `${JSON.stringify({ ...entry, id: undefined })}\n`);
    if (lines.length === 0) return;
    this.#writing = this.#append(lines.join('')).catch((err: unknown) =>
      this.#deps.log.warn('the timeline could not be written', { err }),
    );
    await this.#writing;
    this.#writing = undefined;
    this.#later();
  }

  async #append(text: string): Promise<void> {
    const { directory, maxFileBytes } = this.#o;
    const file = join(directory, CURRENT);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const size = await stat(file).then(
      (found) => found.size,
      () => 0,
    );
    if (size > maxFileBytes) await rename(file, join(directory, OLDER));
    await this.#deps.append(file, text);
  }

  /** What was there before comes first; what happened while it was being read comes behind it. */
  async #load(): Promise<void> {
    const before: NewEntry[] = [];
    for (const name of [OLDER, CURRENT]) before.push(...entriesIn(await this.#text(name)));
    const early = this.#entries;
    const all: NewEntry[] = [...before, ...early].slice(-this.#o.keep);
    this.#nextId = all.length + 1;
    this.#entries = all.map((entry, i) => ({ ...entry, id: i + 1 }));
  }

  async #text(name: string): Promise<string> {
    try {
      return await readFile(join(this.#o.directory, name), 'utf8');
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') this.#deps.log.warn('the timeline could not be read', { err });
      return '';
    }
  }
}

/** A line that was cut off by a crash, or damaged, is left out. */
export function entriesIn(text: string): readonly NewEntry[] {
  return text.split('\n').flatMap((line): NewEntry[] => {
    try {
      const found = JSON.parse(line) as NewEntry;
      return typeof found.atMs === 'number' && typeof found.text === 'string' && typeof found.kind === 'string'
        ? [found]
        : [];
    } catch {
      // Not JSON: cut off by a crash.
      return [];
    }
  });
}
