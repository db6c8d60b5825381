// The volumes of one pod: what is wanted, what is there, and the steps under way. `reconcile` may be called at any time
// and as often as anybody likes; it starts the steps that are due, at most one per volume, and each step's end calls it
// again. A step that hangs holds up its own volume and nothing else.
import { isDeepStrictEqual } from 'node:util';
import { formatDurationMs } from '../core/duration.ts';
import type { EventRecorder } from '../core/events.ts';
import { podKey, type Pod, type Volume } from '../core/pod.ts';
import { childScope, withDeadline, type Scope } from '../lib/abort.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { isFault, KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { VolumeMetrics } from './metrics.ts';
import { planVolume, usedVolumes, type Actual, type VolumeStep } from './plan.ts';
import type { MountedVolume, ObjectReference, ResolvedVolume, VolumeResolver } from './plugin.ts';
import type { FoundVolume } from './reconstruct.ts';

export type PodVolumesDeps = {
  readonly resolver: VolumeResolver;
  /** Removes the binds into a volume, before the volume goes. */
  readonly cleanSubPaths: (uid: string, volume: string, signal: AbortSignal) => Promise<void>;
  /** Makes the pod's directories. */
  readonly ensurePodDirs: (uid: string) => Promise<void>;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Pick<VolumeMetrics, 'observe'>;
};

export type PodVolumesOpts = {
  readonly stepTimeoutMs: number;
  /** Called after every change of what is there. */
  readonly onChange: () => void;
};

type Step = Exclude<VolumeStep['do'], 'wait' | 'nothing' | 'forget'>;
type Failure = { readonly message: string; readonly sinceMs: number };
type Running = { readonly step: Step; readonly scope: Scope; readonly sinceMs: number; doing: string };

const OVERDUE_MS = 5_000;

class Entry {
  /** The name in the pod; for a volume only found on disk, the name of its directory. */
  readonly name: string;
  wanted: Volume | undefined;
  resolved: ResolvedVolume | undefined;
  actual: Actual = { is: 'unmounted' };
  stale = false;
  failure: Failure | undefined;
  notBefore = 0;
  running: Running | undefined;
  timer: Timer | undefined;
  readonly backoff = new Backoff({ baseMs: 500, maxMs: 122_000 });

  constructor(name: string) {
    this.name = name;
  }
}

export class PodVolumes {
  readonly uid: string;
  readonly #deps: PodVolumesDeps;
  readonly #opts: PodVolumesOpts;
  readonly #entries = new Map<string, Entry>();
  readonly #root: AbortSignal;
  #pod: Pod | undefined;
  #refused: string | undefined;

  constructor(uid: string, deps: PodVolumesDeps, opts: PodVolumesOpts, signal: AbortSignal) {
    this.uid = uid;
    this.#deps = deps;
    this.#opts = opts;
    this.#root = signal;
  }

  /** Takes over a volume that an earlier run left on disk. */
  adopt({ plugin, specName }: Pick<FoundVolume, 'plugin' | 'specName'>): void {
    const place = plugin === undefined ? undefined : { plugin, specName };
    if (place !== undefined && this.#at(place) !== undefined) return;
    const named = this.#entries.get(specName);
    const isFree = named === undefined || (named.resolved === undefined && named.actual.is === 'unmounted');
    const entry = this.#entry(isFree ? specName : `${plugin?.name ?? 'sub-paths'}/${specName}`);
    entry.resolved = place;
    entry.actual = { is: 'uncertain', reconstructed: true };
  }

  setWanted(pod: Pod): void {
    const changed = this.#pod !== undefined && !hasSameContent(this.#pod, pod);
    this.#pod = pod;
    const volumes = usedVolumes(pod);
    const names = new Set(volumes.map((volume) => volume.name));
    for (const volume of volumes) this.#entry(volume.name).wanted = volume;
    for (const entry of this.#entries.values()) if (!names.has(entry.name)) this.#unwant(entry);
    if (changed) this.markStale();
    this.reconcile();
  }

  /** The pod is over: everything of it goes, also what was only found on disk. */
  setUnwanted(): void {
    for (const entry of this.#entries.values()) {
      this.#unwant(entry);
      if (entry.actual.is === 'uncertain') entry.actual = { is: 'uncertain', reconstructed: false };
    }
    this.reconcile();
  }

  /** Asks for the content of volumes to be written again, where the kind can: all of them, or those made of an object. */
  markStale(of?: ObjectReference): void {
    for (const entry of this.#entries.values()) {
      if (entry.wanted === undefined || entry.resolved?.plugin.refreshes !== true) continue;
      if (of !== undefined && !refersTo(entry, of)) continue;
      entry.stale = true;
      // Something changed, so whatever failed before deserves a try now.
      if (of !== undefined) entry.notBefore = 0;
    }
  }

  reconcile(): void {
    if (this.#root.aborted) return;
    const context = {
      now: this.#deps.clock.monotonic(),
      placesKnown: this.#arePlacesKnown(),
    };
    for (const entry of this.#entries.values()) {
      if (entry.running !== undefined) continue;
      const { actual, stale, notBefore } = entry;
      const step = planVolume({ wanted: entry.wanted !== undefined, actual, stale, notBefore }, context);
      if (step.do === 'forget') this.#forget(entry);
      else if (step.do === 'wait') this.#later(entry, step.ms);
      else if (step.do !== 'nothing') this.#start(entry, step.do);
    }
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** Only what is on disk is known: no pod was set for it. */
  get isOnlyFound(): boolean {
    return this.#pod === undefined;
  }

  /** Nothing of the pod is mounted or may be. */
  get isUnmounted(): boolean {
    return [...this.#entries.values()].every((e) => e.actual.is === 'unmounted' && e.running === undefined);
  }

  get hasRunning(): boolean {
    return [...this.#entries.values()].some((entry) => entry.running !== undefined);
  }

  /** Names of wanted volumes that are not mounted. */
  get missing(): string[] {
    return [...this.#entries.values()]
      .filter((entry) => entry.wanted !== undefined && entry.actual.is !== 'mounted')
      .map((entry) => entry.name);
  }

  /** A kind of volume that can never be mounted here. */
  get refused(): string | undefined {
    return this.#refused;
  }

  /** What containers can mount. Kinds that the runtime mounts by itself are not among them. */
  mounts(): Map<string, MountedVolume> {
    const mounts = new Map<string, MountedVolume>();
    for (const { name, wanted, actual } of this.#entries.values()) {
      if (wanted === undefined || actual.is !== 'mounted' || actual.mounted.hostPath === '') continue;
      mounts.set(name, actual.mounted);
    }
    return mounts;
  }

  /** Adds this pod's volumes to counts by plugin. */
  count(totals: Map<string, { desired: number; actual: number }>): void {
    for (const { wanted, resolved, actual } of this.#entries.values()) {
      const name = resolved?.plugin.name;
      if (name === undefined) continue;
      const total = totals.get(name) ?? { desired: 0, actual: 0 };
      if (wanted !== undefined) total.desired++;
      if (actual.is !== 'unmounted') total.actual++;
      totals.set(name, total);
    }
  }

  /** The name of a mounted volume's directory. */
  specNameOf(name: string): string | undefined {
    return this.#entries.get(name)?.resolved?.specName;
  }

  attachedNames(): string[] {
    const names: string[] = [];
    for (const { wanted, resolved } of this.#entries.values()) {
      if (wanted === undefined || resolved === undefined || this.#pod === undefined) continue;
      const name = resolved.plugin.attachedName?.({ pod: this.#pod, volume: wanted, specName: resolved.specName });
      if (name !== undefined) names.push(name);
    }
    return names;
  }

  /** One clause per volume that keeps the pod waiting: which, why, since when. */
  complaints(): string[] {
    const now = this.#deps.clock.now();
    const clauses: string[] = [];
    for (const entry of this.#entries.values()) {
      const { running, failure } = entry;
      if (entry.wanted !== undefined && entry.actual.is === 'mounted' && failure === undefined) continue;
      if (failure !== undefined) {
        clauses.push(`volume "${entry.name}": ${failure.message} (for ${ago(now, failure.sinceMs)})`);
      } else if (running !== undefined) {
        clauses.push(`volume "${entry.name}": ${running.doing} (for ${ago(now, running.sinceMs)})`);
      }
    }
    return clauses;
  }

  /** Steps under way are told to end; their volumes stay as they are. */
  stop(): void {
    for (const entry of this.#entries.values()) {
      entry.timer?.cancel();
      entry.running?.scope.abort();
    }
  }

  #entry(name: string): Entry {
    let entry = this.#entries.get(name);
    if (entry === undefined) this.#entries.set(name, (entry = new Entry(name)));
    return entry;
  }

  #unwant(entry: Entry): void {
    if (entry.wanted === undefined) return;
    entry.wanted = undefined;
    entry.stale = false;
    entry.notBefore = 0;
    entry.failure = undefined;
    entry.backoff.succeeded();
    if (entry.running?.step !== 'unmount') entry.running?.scope.abort();
  }

  #forget(entry: Entry): void {
    entry.timer?.cancel();
    this.#entries.delete(entry.name);
    this.#opts.onChange();
  }

  #later(entry: Entry, ms: number): void {
    entry.timer?.cancel();
    entry.timer = this.#deps.clock.after(ms, () => this.reconcile());
  }

  #start(entry: Entry, step: Step): void {
    entry.timer?.cancel();
    entry.timer = undefined;
    const doing = step === 'unmount' ? 'unmounting' : 'mounting';
    const running: Running = { step, scope: childScope(this.#root), sinceMs: this.#deps.clock.now(), doing };
    entry.running = running;
    void this.#run(entry, running);
  }

  async #run(entry: Entry, running: Running): Promise<void> {
    const { clock } = this.#deps;
    const startedAt = clock.monotonic();
    const plugin = entry.resolved?.plugin.name;
    let succeeded = false;
    // Should the step not even end when told to, people still learn what it hangs in.
    const overdue = clock.after(this.#opts.stepTimeoutMs + OVERDUE_MS, () =>
      this.#failed(entry, running.step, new KubeletError('deadline', `no end after ${running.doing}, still waiting`)),
    );
    try {
      await withDeadline(clock, running.scope.signal, this.#opts.stepTimeoutMs, (signal) =>
        running.step === 'unmount' ? this.#unmount(entry, signal) : this.#mount(entry, running, signal),
      );
      succeeded = true;
      entry.failure = undefined;
      entry.backoff.succeeded();
    } catch (err) {
      if (!running.scope.signal.aborted) this.#failed(entry, running.step, err);
    } finally {
      overdue.cancel();
      running.scope.release();
      const operation = running.step === 'unmount' ? 'volume_unmount' : 'volume_mount';
      const kind = plugin ?? entry.resolved?.plugin.name ?? 'unknown';
      this.#deps.metrics?.observe(kind, operation, succeeded, (clock.monotonic() - startedAt) / 1000);
      entry.running = undefined;
      this.#opts.onChange();
      this.reconcile();
    }
  }

  async #mount(entry: Entry, running: Running, signal: AbortSignal): Promise<void> {
    const pod = this.#pod;
    const volume = entry.wanted;
    if (pod === undefined || volume === undefined) return;
    const { plugin, specName } = await this.#resolve(entry, pod, volume, signal);
    await this.#deps.ensurePodDirs(this.uid);
    // From here on something may be on disk, whatever becomes of the step.
    if (entry.actual.is === 'unmounted') entry.actual = { is: 'uncertain', reconstructed: false };
    entry.stale = false;
    const progress = (doing: string): void => void (running.doing = doing);
    const mounted = await plugin.setUp({ pod, volume, specName, progress }, signal);
    entry.actual = { is: 'mounted', mounted };
    if (mounted.refreshAtMs !== undefined) this.#refreshAt(entry, mounted.refreshAtMs);
  }

  /** Finds the place of a volume on disk and takes over what is there, by whatever name it was found. */
  async #resolve(entry: Entry, pod: Pod, volume: Volume, signal: AbortSignal): Promise<ResolvedVolume> {
    if (entry.resolved !== undefined && !isReconstructed(entry)) return entry.resolved;
    const resolved = await this.#deps.resolver.resolve(pod, volume, signal);
    if (entry.resolved !== undefined && !isSamePlace(entry.resolved, resolved)) {
      // Another volume had this name: a static pod that came back changed.
      const old = this.#entry(`${entry.resolved.plugin.name}/${entry.resolved.specName}`);
      old.resolved = entry.resolved;
      old.actual = entry.actual;
      entry.actual = { is: 'unmounted' };
    }
    const found = this.#at(resolved);
    if (found !== undefined && found !== entry && found.wanted === undefined) {
      entry.actual = found.actual;
      this.#entries.delete(found.name);
    }
    entry.resolved = resolved;
    return resolved;
  }

  #arePlacesKnown(): boolean {
    if (this.#pod === undefined) return false;
    return [...this.#entries.values()].every(
      (e) => e.wanted === undefined || (e.resolved !== undefined && !isReconstructed(e)),
    );
  }

  #at(place: ResolvedVolume): Entry | undefined {
    for (const entry of this.#entries.values()) if (isSamePlace(entry.resolved, place)) return entry;
    return undefined;
  }

  async #unmount(entry: Entry, signal: AbortSignal): Promise<void> {
    // From here on some of it may be gone, whatever becomes of the step: wanted again, it is mounted again.
    if (entry.actual.is === 'mounted') entry.actual = { is: 'uncertain', reconstructed: false };
    await this.#deps.cleanSubPaths(this.uid, entry.resolved?.specName ?? entry.name, signal);
    if (entry.resolved !== undefined) {
      await entry.resolved.plugin.tearDown({ uid: this.uid, specName: entry.resolved.specName }, signal);
    }
    entry.actual = { is: 'unmounted' };
    entry.resolved = undefined;
  }

  #refreshAt(entry: Entry, atMs: number): void {
    entry.timer?.cancel();
    entry.timer = this.#deps.clock.after(Math.max(atMs - this.#deps.clock.now(), 1_000), () => {
      entry.stale = true;
      this.reconcile();
    });
  }

  #failed(entry: Entry, step: Step, err: unknown): void {
    const { clock, log, events } = this.#deps;
    const sinceMs = entry.failure?.sinceMs ?? clock.now();
    const never = isFault(err, 'unimplemented') && entry.resolved === undefined;
    if (never) this.#refused = err.message;
    const retryMs = never ? Infinity : entry.backoff.failed(clock.monotonic());
    entry.notBefore = clock.monotonic() + retryMs;
    if (step === 'refresh') entry.stale = true;
    const why = messageOf(err);
    const fields = { pod: this.#pod === undefined ? '' : podKey(this.#pod), podUID: this.uid, volume: entry.name };
    if (step === 'unmount') {
      const message = `UnmountVolume.TearDown failed for volume "${entry.name}" : ${why}`;
      entry.failure = { message, sinceMs };
      log.warn('volume could not be unmounted', { ...fields, err, retryMs });
      return;
    }
    const stage = isFault(err) && typeof err.detail['stage'] === 'string' ? err.detail['stage'] : 'MountVolume.SetUp';
    const message = `${stage} failed for volume "${entry.name}" : ${why}`;
    entry.failure = { message, sinceMs };
    log.warn('volume could not be mounted', { ...fields, err, retryMs });
    if (this.#pod !== undefined) events.pod(this.#pod, 'Warning', 'FailedMount', message);
  }
}

const isSamePlace = (a: ResolvedVolume | undefined, b: ResolvedVolume): boolean =>
  a !== undefined && a.plugin.name === b.plugin.name && a.specName === b.specName;

const isReconstructed = ({ actual }: Entry): boolean => actual.is === 'uncertain' && actual.reconstructed;

const refersTo = (entry: Entry, of: ObjectReference): boolean =>
  entry.wanted !== undefined &&
  (entry.resolved?.plugin.references?.(entry.wanted) ?? []).some((r) => r.kind === of.kind && r.name === of.name);

/** Volumes show a pod's names, labels, annotations and spec. Its status changes all the time and is in none of them. */
const hasSameContent = (a: Pod, b: Pod): boolean =>
  a === b ||
  (isDeepStrictEqual(a.metadata.labels, b.metadata.labels) &&
    isDeepStrictEqual(a.metadata.annotations, b.metadata.annotations) &&
    isDeepStrictEqual(a.spec, b.spec));

const ago = (now: number, sinceMs: number): string =>
  formatDurationMs(Math.max(0, Math.round((now - sinceMs) / 1000)) * 1000);

/** The error of a wait that ended before every volume was mounted, in upstream's words plus what each one waits for. */
export function notMountedError(volumes: PodVolumes, why: string): KubeletError {
  const missing = volumes.missing.sort();
  const detail = volumes.complaints();
  const text = `unmounted volumes=[${missing.join(' ')}], unattached volumes=[], failed to process volumes=[]: ${why}`;
  return new KubeletError('deadline', detail.length === 0 ? text : `${text}: ${detail.join('; ')}`, {
    detail: { unmounted: missing },
  });
}
