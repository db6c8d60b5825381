// Full sets of pods from every source, and single pods of a set, told as changes. `diffPods` decides, `PodConfig` remembers. A pod's
// `config.source` and `config.seen` annotations are put on here and survive all updates.
import type { EventRecorder } from '../core/events.ts';
import { CONFIG_MIRROR, CONFIG_SEEN, CONFIG_SOURCE, fullName, podRef, uidOf, type Pod } from '../core/pod.ts';
import { rfc3339Nano } from '../core/time.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { sameData } from '../lib/same-data.ts';

export type PodOp = 'ADD' | 'UPDATE' | 'DELETE' | 'REMOVE' | 'RECONCILE';
export type PodChange = { readonly op: PodOp; readonly source: string; readonly pods: readonly Pod[] };

export type PodDiff = {
  /** What is known afterwards, by uid. */
  readonly known: Map<string, Pod>;
  readonly changes: Readonly<Record<PodOp, readonly Pod[]>>;
  /** Pods whose name another pod of the same set has already. */
  readonly duplicates: readonly Pod[];
};

/** In this order people are told. */
const ORDER: readonly PodOp[] = ['REMOVE', 'ADD', 'UPDATE', 'DELETE', 'RECONCILE'];

function diffPods(before: ReadonlyMap<string, Pod>, set: readonly Pod[], source: string, seen: string): PodDiff {
  const changes: Record<PodOp, Pod[]> = { ADD: [], UPDATE: [], DELETE: [], REMOVE: [], RECONCILE: [] };
  const known = new Map<string, Pod>();
  // Names were unique before: they have to be looked at only when somebody has come.
  const names = set.every((pod) => before.has(uidOf(pod))) ? undefined : new Set<string>();
  const duplicates: Pod[] = [];
  for (const pod of set) {
    const uid = uidOf(pod);
    if (names?.has(fullName(pod)) === true || known.has(uid)) {
      duplicates.push(pod);
      continue;
    }
    names?.add(fullName(pod));
    const old = before.get(uid);
    if (old !== undefined && isUntouched(old, pod)) {
      known.set(uid, old);
      continue;
    }
    const { marked, op } = diffPod(old, pod, source, seen);
    known.set(uid, marked);
    if (op !== undefined) changes[op].push(marked);
  }
  for (const [uid, pod] of before) if (!known.has(uid)) changes.REMOVE.push(pod);
  return { known, changes, duplicates };
}

function diffPod(old: Pod | undefined, pod: Pod, source: string, seen: string): { marked: Pod; op: PodOp | undefined } {
  const marked = withMarks(pod, source, old?.metadata.annotations?.[CONFIG_SEEN] ?? seen);
  return { marked, op: old === undefined ? 'ADD' : changeOf(old, marked) };
}

/** The very object of last time: a set of many pods comes again for every change of one. */
const isUntouched = (old: Pod, now: Pod): boolean =>
  old.spec === now.spec && old.status === now.status && old.metadata.resourceVersion === now.metadata.resourceVersion;

const withMarks = (pod: Pod, source: string, seen: string): Pod => ({
  ...pod,
  metadata: {
    ...pod.metadata,
    annotations: { ...pod.metadata.annotations, [CONFIG_SOURCE]: source, [CONFIG_SEEN]: seen },
  },
});

function changeOf(old: Pod, now: Pod): PodOp | undefined {
  const [a, b] = [old.metadata, now.metadata];
  const same =
    a.deletionTimestamp === b.deletionTimestamp &&
    a.deletionGracePeriodSeconds === b.deletionGracePeriodSeconds &&
    (old.spec === now.spec || sameData(old.spec, now.spec)) &&
    sameData(a.labels ?? {}, b.labels ?? {}) &&
    sameData(foreignAnnotations(old), foreignAnnotations(now));
  if (!same) return b.deletionTimestamp === undefined ? 'UPDATE' : 'DELETE';
  return old.status === now.status || sameData(old.status, now.status) ? undefined : 'RECONCILE';
}

/** Annotations that are not ours to set. */
const foreignAnnotations = (pod: Pod): Readonly<Record<string, string>> => {
  const {
    [CONFIG_SOURCE]: _source,
    [CONFIG_SEEN]: _seen,
    [CONFIG_MIRROR]: _mirror,
    ...rest
  } = pod.metadata.annotations ?? {};
  return rest;
};

function isNameTaken(known: ReadonlyMap<string, Pod>, { metadata: { name, namespace } }: Pod): boolean {
  for (const { metadata } of known.values())
    if (metadata.name === name && metadata.namespace === namespace) return true;
  return false;
}

export type PodConfigDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: Pick<EventRecorder, 'pod'>;
  /** Told of every change, in order, at once. Must not throw. */
  readonly onChange: (change: PodChange) => void;
};
export type PodConfigOptions = {
  /** Sources that must each have been heard once before anything may be deleted: `file`, `http`, `manifests`, `api`. */
  readonly sources: readonly string[];
};

export class PodConfig {
  readonly #deps: PodConfigDeps;
  readonly #opts: PodConfigOptions;
  readonly #bySource = new Map<string, Map<string, Pod>>();
  readonly #heard = new Set<string>();

  constructor(deps: PodConfigDeps, opts: PodConfigOptions) {
    this.#deps = deps;
    this.#opts = opts;
  }

  /** Takes the full set of one source. A `provisional` set (an old copy) does not count as having heard the source. */
  set(source: string, pods: readonly Pod[], provisional = false): void {
    const before = this.#bySource.get(source);
    const isFirstWord = before === undefined || (!provisional && !this.#heard.has(source));
    if (!provisional) this.#heard.add(source);
    const diff = diffPods(before ?? new Map<string, Pod>(), pods, source, this.#seen());
    this.#bySource.set(source, diff.known);
    for (const pod of diff.duplicates) this.#refuseDuplicate(source, pod);
    for (const op of ORDER) {
      const changed = diff.changes[op];
      // Everybody learns of a source's first word, even if it is that there is nothing, or what an old copy said.
      if (changed.length > 0 || (op === 'ADD' && isFirstWord)) this.#deps.onChange({ op, source, pods: changed });
    }
  }

  /** One pod of a source whose full set is known: new, changed or (undefined) gone. The others are not looked at. */
  change(source: string, uid: string, pod: Pod | undefined): void {
    const known = this.#bySource.get(source);
    if (known === undefined) return;
    const old = known.get(uid);
    if (pod === undefined) {
      if (known.delete(uid) && old !== undefined) this.#deps.onChange({ op: 'REMOVE', source, pods: [old] });
      return;
    }
    if (old === undefined && isNameTaken(known, pod)) return this.#refuseDuplicate(source, pod);
    if (old !== undefined && isUntouched(old, pod)) return;
    const { marked, op } = diffPod(old, pod, source, this.#seen());
    known.set(uid, marked);
    if (op !== undefined) this.#deps.onChange({ op, source, pods: [marked] });
  }

  /** Whether every configured source has been heard: before that, absence means nothing. */
  sourcesReady(): boolean {
    return this.#opts.sources.every((source) => this.#heard.has(source));
  }

  /** Sources that have not been heard yet. */
  awaited(): readonly string[] {
    return this.#opts.sources.filter((source) => !this.#heard.has(source));
  }

  pods(): readonly Pod[] {
    return [...this.#bySource.values()].flatMap((known) => [...known.values()]);
  }

  #seen(): string {
    return rfc3339Nano(this.#deps.clock.nowNanos());
  }

  #refuseDuplicate(source: string, pod: Pod): void {
    this.#deps.log.warn('pod name is taken', { source, pod: podRef(pod) });
    this.#deps.events.pod(
      pod,
      'Warning',
      'FailedValidation',
      `Error validating pod ${podRef(pod)} from ${source} due to duplicate pod name "${pod.metadata.name}", ignoring`,
    );
  }
}
