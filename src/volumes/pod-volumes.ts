// The volumes of one pod: what is wanted, what is there, and the steps under way. `reconcile` may be called at any time. It starts
// the steps that are due, at most one per volume; each step's end calls it again. A hung step holds up its own volume only.
import { podKey, type Pod, type Volume } from '../core/pod.ts';
import { childScope, withDeadline } from '../lib/abort.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import { attachVolume, awaitsNobody, waitsInVain, type AttachStepDeps } from './attach-step.ts';
import { gidOf, mountProblem } from './claims/mount-checks.ts';
import { ago, mountFailure, tellMismatch, tellOther, unmountFailure, type Missing } from './mount-messages.ts';
import { hasSameContent, planVolume, usedVolumes } from './plan.ts';
import type { MountedVolume, ObjectReference, ResolvedVolume } from './plugin.ts';
import type { PodVolumesDeps, PodVolumesOpts } from './pod-volumes-deps.ts';
import type { FoundVolume } from './reconstruct.ts';
import { StepOperations } from './step-operations.ts';
import { isSamePlace, VolumeEntry, type Running, type Step, type VolumePlace } from './volume-entry.ts';

const OVERDUE_MS = 5_000;
const UNRESOLVED_RETRY_MS = 5_000;

export class PodVolumes {
  readonly uid: string;
  readonly #deps: PodVolumesDeps;
  readonly #opts: PodVolumesOpts;
  readonly #entries = new Map<string, VolumeEntry>();
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
  adopt(found: Omit<FoundVolume, 'uid'>): void {
    const { plugin, specName, volumeMode } = found;
    const place = plugin === undefined ? undefined : { plugin, specName, volumeMode, readOnly: false };
    if (place !== undefined && this.#at(place) !== undefined) return;
    const named = this.#entries.get(specName);
    const isFree = named === undefined || (named.resolved === undefined && named.actual.is === 'unmounted');
    const entry = this.#entry(isFree ? specName : `${plugin?.name ?? 'sub-paths'}/${specName}`);
    entry.resolved = place;
    entry.attachedName = found.attachedName;
    entry.uniqueName = found.uniqueName;
    entry.metricName = found.metricName;
    entry.isBroken = found.isBroken === true;
    entry.actual = { is: 'uncertain', reconstructed: true };
  }

  setWanted(pod: Pod): void {
    const changed = this.#pod !== undefined && !hasSameContent(this.#pod, pod);
    this.#pod = pod;
    const volumes = usedVolumes(pod);
    const names = new Set(volumes.map((volume) => volume.name));
    for (const volume of volumes) this.#entry(volume.name).want(volume, this.#deps.clock.monotonic());
    for (const entry of this.#entries.values()) if (!names.has(entry.name)) entry.unwant();
    if (changed) this.markStale();
    this.reconcile();
  }

  /** The pod is over: everything of it goes, also what was only found on disk. */
  setUnwanted(): void {
    for (const entry of this.#entries.values()) {
      entry.unwant();
      if (entry.actual.is === 'uncertain') entry.actual = { is: 'uncertain', reconstructed: false };
    }
    this.reconcile();
  }

  /** Asks for the content of volumes to be written again, where the kind can: all of them, or those made of an object. */
  markStale(of?: ObjectReference): void {
    for (const entry of this.#entries.values()) {
      if (entry.wanted === undefined || entry.resolved?.plugin.refreshes !== true) continue;
      if (of !== undefined && !entry.refersTo(of)) continue;
      entry.stale = true;
      // Something changed, so whatever failed before deserves a try now.
      if (of !== undefined) entry.notBefore = 0;
    }
  }

  /** What failed with volumes of this kind deserves a try now, and what is of a kind not known yet. */
  retry(plugin: string): void {
    for (const entry of this.#entries.values()) {
      if (entry.resolved?.plugin.name !== plugin && entry.failure?.unresolved !== true) continue;
      entry.notBefore = 0;
      if (this.#pod !== undefined && awaitsNobody(entry, this.#pod)) entry.running?.scope.abort();
    }
    this.reconcile();
  }

  /** The pod is being synced: drivers that asked for it publish their volumes again. */
  markSynced(): void {
    for (const entry of this.#entries.values()) {
      if (entry.actual.is === 'mounted' && entry.wantsEverySync) entry.stale = true;
    }
  }

  get mayGrow(): boolean {
    return [...this.#entries.values()].some((entry) => entry.mayGrow);
  }

  /** Reads the claims of volumes that can grow, and lets them. */
  lookAtClaims(): void {
    for (const entry of this.#entries.values()) if (entry.mayGrow) entry.stale = true;
    this.reconcile();
  }

  reconcile(): void {
    if (this.#root.aborted) return;
    const context = {
      now: this.#deps.clock.monotonic(),
      placesKnown: this.#arePlacesKnown(),
    };
    for (const entry of this.#entries.values()) {
      if (entry.running !== undefined || (entry.sameAs !== undefined && entry.wanted !== undefined)) continue;
      if (this.#pod !== undefined && entry.isFoundOnly) continue;
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
    return this.#missingEntries().map((entry) => entry.name);
  }

  /** One of them failed, or a controller has to attach it. */
  get isBlocked(): boolean {
    return this.#missingEntries().some((e) => e.failure !== undefined || e.running?.awaitsAttach !== undefined);
  }

  /** The same, by what they wait for. */
  missingByCause(): Missing {
    const missing = this.#missingEntries();
    const names = (which: (entry: VolumeEntry) => boolean): string[] => missing.filter(which).map(({ name }) => name);
    return {
      unmounted: names(() => true),
      unattached: names((entry) => entry.running?.awaitsAttach !== undefined),
      unresolved: names((entry) => entry.failure?.unresolved === true),
    };
  }

  /** A volume waits to be attached to a node that can take no more. */
  attachLimitReached(signal: AbortSignal): Promise<boolean> {
    return waitsInVain(this.#entries.values(), signal);
  }

  /** A kind of volume that can never be mounted here. */
  get refused(): string | undefined {
    return this.#refused;
  }

  /** What containers can mount. Kinds that the runtime mounts by itself are not among them. */
  mounts(): Map<string, MountedVolume> {
    const mounts = new Map<string, MountedVolume>();
    for (const { name, wanted, actual, sameAs } of this.#entries.values()) {
      const there = sameAs?.actual ?? actual;
      if (wanted === undefined || there.is !== 'mounted') continue;
      const { hostPath, devicePath } = there.mounted;
      if (hostPath !== '' || devicePath !== undefined) mounts.set(name, there.mounted);
    }
    return mounts;
  }

  /** Adds this pod's volumes to counts by plugin. */
  count(totals: Map<string, { desired: number; actual: number }>): void {
    for (const { wanted, resolved, actual, metricName } of this.#entries.values()) {
      const name = metricName ?? resolved?.plugin.name;
      if (name === undefined) continue;
      const total = totals.get(name) ?? { desired: 0, actual: 0 };
      if (wanted !== undefined) total.desired++;
      if (actual.is === 'mounted') total.actual++;
      totals.set(name, total);
    }
  }

  /** Volumes of a kind that may be on the disk although this process has not set them up. */
  maybeThere(kind: string): readonly VolumeEntry[] {
    return [...this.#entries.values()].filter((e) => e.resolved?.plugin.name === kind && e.actual.is === 'uncertain');
  }

  /** What is mounted and can say itself how much it holds. */
  measured(): { name: string; place: VolumePlace; mounted: MountedVolume }[] {
    return [...this.#entries.values()].flatMap(({ name, resolved, actual }) =>
      resolved?.plugin.stats === undefined || actual.is !== 'mounted'
        ? []
        : [{ name, place: resolved, mounted: actual.mounted }],
    );
  }

  /** The driver of a volume found something wrong with it. */
  tellAbnormal(name: string, message: string): void {
    const { events } = this.#deps;
    if (this.#pod !== undefined)
      events.pod(this.#pod, 'Warning', 'VolumeConditionAbnormal', `Volume ${name}: ${message}`);
  }

  /** The name of a mounted volume's directory. */
  specNameOf(name: string): string | undefined {
    return this.#entries.get(name)?.resolved?.specName;
  }

  /** Names of volumes that a controller attaches, as long as they are wanted or may be there. */
  attachedNames(): string[] {
    const names: string[] = [];
    for (const entry of this.#entries.values()) {
      if (entry.wanted === undefined && entry.actual.is === 'unmounted') continue;
      const name = entry.attachedName;
      // While the node is not known, what was found on disk counts as attached: nobody may detach it meanwhile.
      const isOnlyFound = entry.isReconstructed && entry.wanted === undefined && name !== undefined;
      if (isOnlyFound && this.#deps.attachments?.isAttached(name) === false) continue;
      if (name !== undefined) names.push(name);
    }
    return names;
  }

  /** Whether a volume that pods share is mounted for this pod, or may be. */
  mayHave(uniqueName: string): boolean {
    return [...this.#entries.values()].some(
      (entry) => entry.actual.is !== 'unmounted' && entry.uniqueName === uniqueName,
    );
  }

  /** One clause per volume that keeps the pod waiting: which, why, since when. */
  complaints(): string[] {
    const now = this.#deps.clock.now();
    const clauses: string[] = [];
    for (const entry of this.#entries.values()) {
      const { running, failure } = entry;
      const isThere = entry.actual.is === 'mounted' || entry.sameAs !== undefined;
      if (entry.wanted !== undefined && isThere && failure === undefined) continue;
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

  #entry(name: string): VolumeEntry {
    let entry = this.#entries.get(name);
    if (entry === undefined) this.#entries.set(name, (entry = new VolumeEntry(name)));
    return entry;
  }

  #forget(entry: VolumeEntry): void {
    entry.timer?.cancel();
    this.#entries.delete(entry.name);
    this.#opts.onChange();
  }

  #later(entry: VolumeEntry, ms: number): void {
    entry.timer?.cancel();
    entry.timer = this.#deps.clock.after(ms, () => this.reconcile());
  }

  #start(entry: VolumeEntry, step: Step): void {
    entry.timer?.cancel();
    entry.timer = undefined;
    const doing = step === 'unmount' ? 'unmounting' : 'mounting';
    const operations = new StepOperations(this.#deps, entry, step);
    const running: Running = {
      step,
      scope: childScope(this.#root),
      sinceMs: this.#deps.clock.now(),
      doing,
      operations,
    };
    entry.running = running;
    void this.#run(entry, running);
  }

  async #run(entry: VolumeEntry, running: Running): Promise<void> {
    // A step that nobody wants any more is neither.
    let succeeded: boolean | undefined;
    try {
      if (running.step === 'unmount')
        await this.#bounded(entry, running, (signal) => this.#unmount(entry, running.operations, signal));
      else await this.#mount(entry, running);
      succeeded = true;
      entry.failure = undefined;
      entry.backoff.succeeded();
    } catch (err) {
      if (running.scope.signal.aborted) return;
      succeeded = false;
      this.#failed(entry, running.step, err);
    } finally {
      running.scope.release();
      if (succeeded !== undefined) running.operations.ended(succeeded);
      entry.running = undefined;
      this.#opts.onChange();
      this.reconcile();
    }
  }

  /** Ends at the limit of the volume's kind. Should the work not even end when told to, people still learn of it. */
  async #bounded<T>(entry: VolumeEntry, running: Running, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock } = this.#deps;
    const limitMs = entry.resolved?.plugin.stepTimeoutMs ?? this.#opts.stepTimeoutMs;
    const overdue = clock.after(limitMs + OVERDUE_MS, () =>
      this.#failed(entry, running.step, new KubeletError('deadline', `no end after ${running.doing}, still waiting`)),
    );
    try {
      return await withDeadline(clock, running.scope.signal, limitMs, work);
    } finally {
      overdue.cancel();
    }
  }

  async #mount(entry: VolumeEntry, running: Running): Promise<void> {
    const pod = this.#pod;
    const volume = entry.wanted;
    if (pod === undefined || volume === undefined) return;
    const resolved = await this.#bounded(entry, running, (signal) => this.#resolve(entry, pod, volume, signal));
    if (entry.sameAs !== undefined) return;
    const { operations } = running;
    const attachedPath = await attachVolume(this.#attaching(), entry, running, { pod, resolved });
    operations.begin();
    const mounted = await this.#bounded(entry, running, async (signal) => {
      await this.#deps.ensurePodDirs(this.uid);
      const { actual } = entry;
      const isMounted = actual.is === 'mounted';
      const inUse = isMounted || entry.isReconstructed;
      if (!isMounted) this.#check(resolved, entry.uniqueName);
      // From here on something may be on disk, whatever becomes of the step.
      if (actual.is === 'unmounted') entry.actual = { is: 'uncertain', reconstructed: false };
      entry.stale = false;
      const progress = (doing: string): void => void (running.doing = doing);
      const { ownershipChanged } = operations;
      const request = { pod, volume, ...resolved, inUse, attachedPath, progress, ownershipChanged };
      // A claim is looked at again to see whether it has grown; only some drivers want more than that.
      const isOnlyChecked = isMounted && resolved.persistent !== undefined && !entry.wantsEverySync;
      const result = isOnlyChecked ? actual.mounted : await resolved.plugin.setUp(request, signal);
      const size = { inUse: isMounted, here: isMounted ? entry.size : undefined };
      if (isOnlyChecked) operations.resized = false;
      entry.size = await this.#deps.expander?.expand(request, resolved.plugin, result, size, signal);
      if (isOnlyChecked) operations.resized = entry.size !== size.here;
      return result;
    });
    const gid = resolved.persistent === undefined ? undefined : gidOf(resolved.persistent.volume);
    entry.actual = { is: 'mounted', mounted: gid === undefined ? mounted : { ...mounted, gid } };
    if (mounted.refreshAtMs !== undefined) this.#refreshAt(entry, mounted.refreshAtMs);
  }

  #attaching(): AttachStepDeps {
    const { attachments, events, controllerAttaches = true } = this.#deps;
    const { onChange } = this.#opts;
    return { events, onChange, controllerAttaches, ...(attachments === undefined ? {} : { attachments }) };
  }

  #check({ plugin, persistent }: ResolvedVolume, unique: string | undefined): void {
    if (persistent === undefined) return;
    const problem = mountProblem({
      volume: persistent.volume,
      mountOptions: persistent.mountOptions,
      plugin,
      node: this.#deps.node?.(),
      usedByOthers: unique !== undefined && this.#deps.isUsedByOthers?.(unique, this.uid) === true,
    });
    if (problem === undefined) return;
    throw new KubeletError('invalid', problem.message, { detail: { stage: problem.stage } });
  }

  /** Finds the place of a volume on disk and takes over what is there, by whatever name it was found. */
  async #resolve(entry: VolumeEntry, pod: Pod, volume: Volume, signal: AbortSignal): Promise<ResolvedVolume> {
    const known = entry.resolved;
    if (known !== undefined && !entry.isReconstructed && known.persistent === undefined) return known;
    const resolved = await this.#deps.resolver.resolve(pod, volume, signal).catch((err: unknown) => {
      signal.throwIfAborted();
      // What is mounted stays what it is, also while its claim cannot be read.
      if (known !== undefined && entry.actual.is === 'mounted') return known;
      if (!isFault(err)) throw err;
      throw new KubeletError(err.kind, err.message, { cause: err, detail: { ...err.detail, unresolved: true } });
    });
    if (known !== undefined && !isSamePlace(known, resolved)) {
      // Containers use what is mounted until the pod is over.
      if (entry.actual.is === 'mounted') return tellOther(this.#deps.events, pod, entry, resolved, known);
      // Another volume had this name: a static pod that came back changed.
      const old = this.#entry(`${known.plugin.name}/${known.specName}`);
      old.resolved = known;
      old.actual = entry.actual;
      entry.actual = { is: 'unmounted' };
    }
    const found = this.#at(resolved);
    if (found !== undefined && found !== entry) {
      if (found.wanted !== undefined) entry.sameAs = found;
      else this.#takeOver(entry, found);
    }
    if (entry.sameAs !== undefined) return resolved;
    entry.resolved = resolved;
    entry.attachedName = resolved.plugin.attachedName?.({ ...resolved, pod, volume });
    entry.uniqueName = resolved.plugin.uniqueName?.({ ...resolved, pod, volume });
    entry.metricName = resolved.plugin.metricName?.({ ...resolved, volume });
    return resolved;
  }

  #takeOver(entry: VolumeEntry, found: VolumeEntry): void {
    entry.actual = found.actual;
    found.timer?.cancel();
    this.#entries.delete(found.name);
  }

  #missingEntries(): VolumeEntry[] {
    return [...this.#entries.values()].filter(
      ({ wanted, actual, sameAs }) => wanted !== undefined && (sameAs?.actual ?? actual).is !== 'mounted',
    );
  }

  #arePlacesKnown(): boolean {
    if (this.#pod === undefined) return false;
    return [...this.#entries.values()].every(
      (e) => e.wanted === undefined || e.sameAs !== undefined || (e.resolved !== undefined && !e.isReconstructed),
    );
  }

  #at(place: VolumePlace): VolumeEntry | undefined {
    for (const entry of this.#entries.values()) if (isSamePlace(entry.resolved, place)) return entry;
    return undefined;
  }

  async #unmount(
    entry: VolumeEntry,
    { releaseDevice }: Pick<StepOperations, 'releaseDevice'>,
    signal: AbortSignal,
  ): Promise<void> {
    // From here on some of it may be gone, whatever becomes of the step: wanted again, it is mounted again.
    if (entry.actual.is === 'mounted') entry.actual = { is: 'uncertain', reconstructed: false };
    await this.#deps.cleanSubPaths(this.uid, entry.resolved?.specName ?? entry.name, signal);
    if (entry.resolved !== undefined) {
      const { plugin, specName, volumeMode } = entry.resolved;
      await plugin.tearDown({ uid: this.uid, specName, volumeMode, releaseDevice }, signal);
    }
    entry.actual = { is: 'unmounted' };
    entry.isAttached = false;
    entry.resolved = undefined;
  }

  #refreshAt(entry: VolumeEntry, atMs: number): void {
    entry.timer?.cancel();
    entry.timer = this.#deps.clock.after(Math.max(atMs - this.#deps.clock.now(), 1_000), () => {
      entry.stale = true;
      this.reconcile();
    });
  }

  #failed(entry: VolumeEntry, step: Step, err: unknown): void {
    const { clock, log, events } = this.#deps;
    const sinceMs = entry.failure?.sinceMs ?? clock.now();
    const unread = isFault(err) && err.detail['unresolved'] === true;
    const never = unread && isFault(err, 'unimplemented');
    if (never) this.#refused = err.message;
    const pauseMs = entry.backoff.failed(clock.monotonic());
    // A claim that is bound meanwhile is noticed soon: nothing tells a node of it.
    const retryMs = never ? Infinity : unread ? Math.min(pauseMs, UNRESOLVED_RETRY_MS) : pauseMs;
    entry.notBefore = clock.monotonic() + retryMs;
    if (step === 'refresh') entry.stale = true;
    const fields = { pod: this.#pod === undefined ? '' : podKey(this.#pod), podUID: this.uid, volume: entry.specName };
    if (step === 'unmount') {
      entry.failure = { message: unmountFailure(entry.specName, err), sinceMs, unresolved: false };
      return log.warn('volume could not be unmounted', { ...fields, err, retryMs });
    }
    entry.failure = { message: '', sinceMs, unresolved: unread };
    const { reason, message, unresolved } = mountFailure(entry.specName, err, this.missingByCause());
    entry.failure = { message, sinceMs, unresolved };
    log.warn('volume could not be mounted', { ...fields, err, retryMs });
    if (this.#pod !== undefined) events.pod(this.#pod, 'Warning', reason, message);
    tellMismatch(this.#deps.volumeEvents, entry.resolved?.persistent, err);
  }
}
