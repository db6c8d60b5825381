// Mounts what pods want and unmounts what nobody wants. Woken by pods coming, changing and going, by changed config maps
// and secrets, and by the timers of back-offs and token refreshes; there is no polling loop. Each volume is worked on by
// itself, so that one that hangs holds up its own pod only.
import type { EventRecorder } from '../core/events.ts';
import type { Node } from '../core/node.ts';
import { namespaceOf, uidOf, type Container, type Pod } from '../core/pod.ts';
import type { MountTable } from '../host/mounts/mount-table.ts';
import type { Mounter } from '../host/mounts/mounter.ts';
import { aborted, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, isFault, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { Attachments } from './attachments.ts';
import { ClaimLooks } from './claims/claim-looks.ts';
import type { Expander } from './claims/expander.ts';
import { DirectorySizes } from './directory-sizes.ts';
import { EMPTY_DIR, type VolumeLayout } from './layout.ts';
import type { VolumeMetrics, VolumeTotals } from './metrics.ts';
import type { PodDirs } from './pod-dirs.ts';
import type { MountedVolume, ObjectReference, VolumePlugin, VolumeResolver } from './plugin.ts';
import { attachLimitError, notMountedError, type PersistentVolumeEvents } from './mount-messages.ts';
import { PodWaiters } from './pod-waiters.ts';
import { PodVolumes } from './pod-volumes.ts';
import { volumesOnDisk } from './reconstruct.ts';
import type { SubPaths } from './subpath.ts';
import { usageOfFilesystem } from './filesystem-stats.ts';
import { usageOf, type VolumeUsage } from './volume-stats.ts';

export type VolumeManagerDeps = {
  readonly resolver: VolumeResolver;
  readonly layout: VolumeLayout;
  readonly podDirs: PodDirs;
  readonly subPaths: SubPaths;
  readonly mounter: Mounter;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: VolumeMetrics;
  /** Absent where nothing is ever attached. */
  readonly attachments?: Attachments;
  readonly controllerAttaches?: boolean;
  readonly node?: () => Node | undefined;
  readonly volumeEvents?: PersistentVolumeEvents;
  readonly expander?: Pick<Expander, 'expand' | 'forget'>;
  /** Project quotas know what some volumes hold. */
  readonly quotas?: VolumeQuotas;
  /** What `volumesInUse` says changed: the node reports it at once. */
  readonly onVolumesInUse?: () => void;
};

/** By the names of the volumes, with how long it took to know. */
export type PodUsage = {
  readonly uid: string;
  readonly volumes: ReadonlyMap<string, VolumeUsage & { readonly tookMs: number }>;
  /** Volumes that are there and could not be measured, or not in time. */
  readonly failed: ReadonlySet<string>;
};

export interface VolumeQuotas {
  usageOf(path: string, signal: AbortSignal): Promise<{ readonly bytes: number; readonly inodes: number } | undefined>;
  close(): void;
}

export type VolumeManagerOpts = {
  /** How long a pod's start waits for its volumes. */
  readonly waitTimeoutMs?: number;
  /** How long one attempt to mount or unmount one volume may take. */
  readonly stepTimeoutMs?: number;
  /** Content is written again at least this often while the pod is being synced. */
  readonly refreshEveryMs?: number;
  /** How far apart the claims of a mounted volume are read, at least. */
  readonly claimsEveryMs?: number;
};

/** How long steps under way may take to end when the agent is told to stop. */
const STOP_MS = 5_000;

/** Passes over what a kind of volume left may overlap: one that waits for a slow driver keeps no other from its turn. */
type LeftoversOf = { readonly plugin: VolumePlugin; passes: number; hasFailed: boolean };

export class VolumeManager implements Runnable {
  readonly name = 'volume-manager';
  readonly #deps: VolumeManagerDeps;
  readonly #opts: Required<VolumeManagerOpts>;
  readonly #pods = new Map<string, PodVolumes>();
  readonly #namespaces = new Map<string, string>();
  /** UIDs whose end was told: nothing of them is mounted until `reopen`. */
  readonly #ended = new Set<string>();
  readonly #refreshedAt = new Map<string, number>();
  readonly #claimLooks: ClaimLooks;
  readonly #sizes: DirectorySizes;
  /** The attached names of each pod, as last told. */
  readonly #inUse = new Map<string, string>();
  /** Kinds whose leftovers are still to be removed; undefined until all pods are known. */
  #leftovers: Map<string, LeftoversOf> | undefined;
  readonly #stop = new AbortController();
  readonly #waiters = new PodWaiters();

  constructor(deps: VolumeManagerDeps, opts: VolumeManagerOpts = {}) {
    this.#deps = deps;
    this.#opts = {
      waitTimeoutMs: opts.waitTimeoutMs ?? 123_000,
      stepTimeoutMs: opts.stepTimeoutMs ?? 110_000,
      refreshEveryMs: opts.refreshEveryMs ?? 60_000,
      claimsEveryMs: opts.claimsEveryMs ?? 10_000,
    };
    this.#claimLooks = new ClaimLooks(deps.clock, { everyMs: this.#opts.claimsEveryMs });
    this.#sizes = new DirectorySizes(deps);
  }

  /** Ends when told to, once the steps under way have ended or had their time. */
  async run(signal: AbortSignal): Promise<void> {
    this.#deps.metrics?.show(() => this.totals());
    await aborted(signal);
    this.#stop.abort(signal.reason);
    this.#claimLooks.stop();
    for (const pod of this.#pods.values()) pod.stop();
    await this.#stepsEnded();
    this.#deps.quotas?.close();
  }

  /** A step that does not listen (a filesystem that is dead) is left behind: what it did is found by the next run. */
  async #stepsEnded(): Promise<void> {
    const { clock, log } = this.#deps;
    const isQuiet = (): boolean => ![...this.#pods.values()].some((pod) => pod.hasRunning);
    try {
      await withDeadline(clock, new AbortController().signal, STOP_MS, (own) => this.#waiters.until('', isQuiet, own));
    } catch {
      for (const [uid, pod] of this.#pods)
        if (pod.hasRunning)
          log.warn('volumes are left behind as they are', { podUID: uid, why: pod.complaints().join('; ') });
    }
  }

  /** Learns from disk what earlier runs mounted. To be called once, before the first pod is set. */
  async reconstruct(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { layout, resolver, log, metrics } = this.#deps;
    const reconstructed = (succeeded: boolean): void => metrics?.reconstructed(succeeded);
    for (const found of await volumesOnDisk(layout, resolver, log, reconstructed))
      this.#volumesOf(found.uid).adopt(found);
    for (const plugin of resolver.all?.() ?? [])
      await plugin.findLeftovers?.(signal).catch((err: unknown) => {
        signal.throwIfAborted();
        log.warn('not all that an earlier run left could be read', { plugin: plugin.name, err });
      });
  }

  /**
   * Lets go of what was only found on disk and belongs to no pod. To be asked once all sources and the runtime have been
   * read, and again whenever pods may have ended: a pod that is known, or still runs, keeps its volumes.
   */
  removeUnknown(isKnown: (uid: string) => boolean): void {
    for (const volumes of this.#pods.values()) {
      if (volumes.isOnlyFound && !isKnown(volumes.uid)) volumes.setUnwanted();
    }
    this.#leftovers ??= new Map(
      [...(this.#deps.resolver.all?.() ?? [])].flatMap((plugin) =>
        plugin.removeLeftovers === undefined ? [] : [[plugin.name, { plugin, passes: 0, hasFailed: false }] as const],
      ),
    );
    for (const kind of this.#leftovers.values()) void this.#removeLeftovers(kind);
  }

  /** They are done with when no pass is under way and none of the last ones failed. */
  async #removeLeftovers(kind: LeftoversOf): Promise<void> {
    if (kind.passes++ === 0) kind.hasFailed = false;
    let told = this.volumesInUse().join(' ');
    const tell = (): void => {
      const now = this.volumesInUse().join(' ');
      if (now !== told) this.#deps.onVolumesInUse?.();
      told = now;
    };
    try {
      await kind.plugin.removeLeftovers?.(tell, this.#stop.signal);
    } catch (err) {
      if (this.#stop.signal.aborted) return;
      kind.hasFailed = true;
      this.#deps.log.debug('what an earlier run left could not be removed yet', { plugin: kind.plugin.name, err });
    } finally {
      tell();
      if (--kind.passes === 0 && !kind.hasFailed) this.#leftovers?.delete(kind.plugin.name);
    }
  }

  /** Wants the volumes of a pod mounted; again for every change of the pod. Refused between `podRemoved` and `reopen`. */
  setDesired(pod: Pod): void {
    const uid = uidOf(pod);
    if (this.#ended.has(uid)) throw new KubeletError('cancelled', 'the pod has ended: its volumes are not mounted');
    this.#namespaces.set(uid, namespaceOf(pod));
    this.#volumesOf(uid).setWanted(pod);
  }

  /** Wants nothing of the pod mounted any more: its containers are gone. */
  podRemoved(uid: string): void {
    this.#ended.add(uid);
    this.#namespaces.delete(uid);
    this.#refreshedAt.delete(uid);
    this.#claimLooks.forget(uid);
    this.#pods.get(uid)?.setUnwanted();
    this.#settle(uid);
  }

  /** The pod starts over after its end, or nothing of it is known any more. */
  reopen(uid: string): void {
    this.#ended.delete(uid);
  }

  /** Writes the content of the pod's volumes again where it changed. */
  remount(uid: string): void {
    const volumes = this.#pods.get(uid);
    volumes?.markStale();
    volumes?.reconcile();
  }

  /** A config map or secret changed, appeared or went. */
  objectChanged(kind: 'configMap' | 'secret', namespace: string, name: string): void {
    for (const [uid, volumes] of this.#pods) {
      if (this.#namespaces.get(uid) === namespace) this.#refresh(volumes, { kind, name });
    }
  }

  /** A kind of volume became able to do what it could not: what failed is tried again now. */
  retry(plugin: string): void {
    for (const volumes of this.#pods.values()) volumes.retry(plugin);
    const cleaned = this.#leftovers?.get(plugin);
    if (cleaned !== undefined) void this.#removeLeftovers(cleaned);
  }

  /** Some cluster trust bundle changed. */
  trustBundlesChanged(): void {
    for (const volumes of this.#pods.values()) this.#refresh(volumes, { kind: 'trustBundles', name: '' });
  }

  /** The certificates of a pod changed, or will never come. */
  podCertificatesChanged(uid: string): void {
    const volumes = this.#pods.get(uid);
    if (volumes !== undefined) this.#refresh(volumes, { kind: 'podCertificates', name: '' });
  }

  /** Resolves the moment every volume of the pod is mounted. The error says which is not, why, and since when. */
  async waitMounted(pod: Pod, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const uid = uidOf(pod);
    this.setDesired(pod);
    const volumes = this.#volumesOf(uid);
    this.#refreshNowAndThen(uid, volumes);
    volumes.markSynced();
    this.#claimLooks.synced(uid, volumes.mayGrow, () => volumes.lookAtClaims());
    volumes.reconcile();
    const gone = (): boolean => this.#pods.get(uid) !== volumes || !this.#namespaces.has(uid);
    const done = (): boolean => gone() || volumes.refused !== undefined || volumes.missing.length === 0;
    try {
      // Mostly all of them are: pods are looked after again and again.
      if (!done())
        await withDeadline(this.#deps.clock, signal, this.#opts.waitTimeoutMs, (own) =>
          this.#waiters.until(uid, done, own),
        );
    } catch (err) {
      if (signal.aborted || !isFault(err, 'deadline')) throw err;
      const missing = volumes.missingByCause();
      if (await volumes.attachLimitReached(signal)) throw attachLimitError(missing, 'context deadline exceeded');
      throw notMountedError(missing, volumes.complaints(), 'context deadline exceeded');
    }
    if (volumes.refused !== undefined) throw new KubeletError('unimplemented', volumes.refused);
    if (gone()) throw new KubeletError('cancelled', 'the pod was removed while its volumes were being mounted');
  }

  /** Resolves when a volume that the pod waits for failed, or waits for a controller itself. Ask after `waitMounted`. */
  async whenBlocked(uid: string, signal: AbortSignal): Promise<void> {
    await this.#waiters.until(uid, () => this.#pods.get(uid)?.isBlocked === true, signal);
  }

  /** Resolves when nothing of the pod is mounted. Call `podRemoved` first. */
  async waitUnmounted(uid: string, signal: AbortSignal): Promise<void> {
    await this.#waiters.until(uid, () => this.#pods.get(uid)?.isUnmounted !== false, signal);
  }

  hasMounts(uid: string): boolean {
    return this.#pods.get(uid)?.isUnmounted === false;
  }

  mountsOf(uid: string): ReadonlyMap<string, MountedVolume> {
    return this.#pods.get(uid)?.mounts() ?? new Map<string, MountedVolume>();
  }

  totals(): VolumeTotals {
    const totals = new Map<string, { desired: number; actual: number }>();
    for (const pod of this.#pods.values()) pod.count(totals);
    return totals;
  }

  /** Names for the node's status: volumes a controller attached for pods here, or that an earlier run left staged. */
  volumesInUse(): string[] {
    const ofPods = [...this.#pods.values()].flatMap((pod) => pod.attachedNames());
    const left = [...(this.#deps.resolver.all?.() ?? [])].flatMap((plugin) => plugin.leftInUse?.() ?? []);
    return [...new Set([...ofPods, ...left])].sort();
  }

  /** The same, as a report of the node's status begins. `isAwaited`: the report must be sent, as volumes wait for its answer. */
  reportVolumesInUse(): { readonly names: readonly string[]; readonly isAwaited: boolean } {
    const names = this.volumesInUse();
    return { names, isAwaited: this.#deps.attachments?.reportBegins(names) === true };
  }

  /** What keeps the pod waiting, as a sentence; undefined if no volume does. */
  blockedOn(uid: string): string | undefined {
    const complaints = this.complaintsOf(uid);
    return complaints.length === 0 ? undefined : `waiting for ${complaints.join('; ')}`;
  }

  /** One clause for each volume that keeps the pod waiting. */
  complaintsOf(uid: string): readonly string[] {
    return this.#pods.get(uid)?.complaints() ?? [];
  }

  /** Binds a part of a mounted volume for a container and returns the path to mount. */
  async prepareSubPath(
    pod: Pod,
    container: Container,
    mountIndex: number,
    subPath: string,
    signal: AbortSignal,
  ): Promise<string> {
    const uid = uidOf(pod);
    const name = container.volumeMounts?.[mountIndex]?.name ?? '';
    const mounted = this.mountsOf(uid).get(name);
    if (mounted === undefined) throw new KubeletError('notFound', `volume "${name}" is not mounted`);
    const volume = this.#pods.get(uid)?.specNameOf(name) ?? name;
    return this.#deps.subPaths.prepare(
      {
        uid,
        volume,
        mountName: name,
        container: container.name,
        mountIndex,
        volumePath: mounted.hostPath,
        subPath,
      },
      signal,
    );
  }

  /** What the volumes of these pods hold, one pod after the other, by one look at the mount table. */
  async *statsOf(uids: readonly string[], signal: AbortSignal): AsyncGenerator<PodUsage> {
    const table = await this.#deps.mounter.table(signal);
    for (const uid of uids) yield this.#usagesOf(uid, table, signal);
  }

  /** Kinds that can say it themselves are asked; of others what lives in the pod's directory is measured. */
  async #usagesOf(uid: string, table: MountTable, signal: AbortSignal): Promise<PodUsage> {
    const failed = new Set<string>();
    const usages = new Map<string, VolumeUsage & { readonly tookMs: number }>();
    const own = `${this.#deps.layout.podDir(uid)}/`;
    const asked = new Set<string>();
    await Promise.all(
      (this.#pods.get(uid)?.measured() ?? []).map(
        async ({ name, place: { plugin, specName, volumeMode }, mounted }) => {
          asked.add(name);
          const usage = await this.#measure(uid, name, failed, signal, async () =>
            plugin.stats?.({ uid, specName, volumeMode }, mounted, signal),
          );
          if (usage === undefined) return;
          usages.set(name, usage);
          if (usage.health?.abnormal === true) this.#pods.get(uid)?.tellAbnormal(name, usage.health.message);
        },
      ),
    );
    const there = [...this.#foundOf(uid), ...this.mountsOf(uid)];
    for (const [name, { hostPath, hasOwnFilesystem }] of new Map(there)) {
      if (asked.has(name) || !hostPath.startsWith(own) || !table.isLocal(hostPath)) continue;
      const isAlone = hasOwnFilesystem === true && table.at(hostPath) !== undefined;
      const usage = await this.#measure(uid, name, failed, signal, () =>
        isAlone ? usageOfFilesystem(hostPath) : this.#count(hostPath, table, signal),
      );
      if (usage !== undefined) usages.set(name, usage);
    }
    return { uid, volumes: usages, failed };
  }

  /** Scratch volumes of an earlier run that are not set up again yet: what is in them is on the disk all the same. */
  #foundOf(uid: string): readonly (readonly [name: string, Pick<MountedVolume, 'hostPath' | 'hasOwnFilesystem'>])[] {
    const { layout } = this.#deps;
    const found = this.#pods.get(uid)?.maybeThere(EMPTY_DIR) ?? [];
    return found.map(({ name, resolved }) => [
      name,
      { hostPath: layout.volumeDir(uid, EMPTY_DIR, resolved?.specName ?? name) },
    ]);
  }

  async #count(path: string, table: MountTable, signal: AbortSignal): Promise<VolumeUsage> {
    const known = await this.#deps.quotas?.usageOf(path, signal);
    if (known !== undefined) return usageOf(path, known, 'fsquota');
    return usageOf(path, await this.#sizes.of(path, table, signal), 'du');
  }

  async #measure(
    uid: string,
    name: string,
    failed: Set<string>,
    signal: AbortSignal,
    measure: () => Promise<VolumeUsage | undefined>,
  ): Promise<(VolumeUsage & { readonly tookMs: number }) | undefined> {
    const { clock } = this.#deps;
    const start = clock.monotonic();
    try {
      const usage = await measure();
      return usage && { ...usage, tookMs: clock.monotonic() - start };
    } catch (err) {
      signal.throwIfAborted();
      this.#deps.log.debug('volume could not be measured', { podUID: uid, volume: name, err });
      if (errnoOf(err) !== 'ENOENT') failed.add(name);
      return undefined;
    }
  }

  #refresh(volumes: PodVolumes, of: ObjectReference): void {
    volumes.markStale(of);
    volumes.reconcile();
  }

  #refreshNowAndThen(uid: string, volumes: PodVolumes): void {
    const now = this.#deps.clock.monotonic();
    const last = this.#refreshedAt.get(uid);
    const isDue = last !== undefined && now - last >= this.#opts.refreshEveryMs;
    if (last === undefined || isDue) this.#refreshedAt.set(uid, now);
    if (isDue) volumes.markStale();
  }

  #volumesOf(uid: string): PodVolumes {
    let volumes = this.#pods.get(uid);
    if (volumes === undefined) {
      const { resolver, podDirs, subPaths, events, clock, log, metrics, attachments, node, expander } = this.#deps;
      const { controllerAttaches = true, volumeEvents } = this.#deps;
      volumes = new PodVolumes(
        uid,
        {
          resolver,
          events,
          clock,
          controllerAttaches,
          log,
          ...(metrics === undefined ? {} : { metrics }),
          ...(attachments === undefined ? {} : { attachments }),
          ...(node === undefined ? {} : { node }),
          ...(expander === undefined ? {} : { expander }),
          ...(volumeEvents === undefined ? {} : { volumeEvents }),
          isUsedByOthers: (name, own) => this.#isUsedByOthers(name, own),
          ensurePodDirs: (id) => podDirs.ensureOnce(id),
          cleanSubPaths: (id, volume, signal) => subPaths.cleanUp(id, volume, signal),
        },
        {
          stepTimeoutMs: this.#opts.stepTimeoutMs,
          onChange: () => this.#settle(uid),
        },
        this.#stop.signal,
      );
      this.#pods.set(uid, volumes);
    }
    return volumes;
  }

  #isUsedByOthers(uniqueName: string, uid: string): boolean {
    return [...this.#pods.values()].some((volumes) => volumes.uid !== uid && volumes.mayHave(uniqueName));
  }

  #settle(uid: string): void {
    const names = this.#pods.get(uid)?.attachedNames().sort().join(' ') ?? '';
    if ((this.#inUse.get(uid) ?? '') !== names) {
      if (names === '') this.#inUse.delete(uid);
      else this.#inUse.set(uid, names);
      this.#deps.onVolumesInUse?.();
    }
    if (this.#pods.get(uid)?.isEmpty === true && !this.#namespaces.has(uid)) {
      this.#pods.delete(uid);
      this.#deps.expander?.forget(uid);
    }
    this.#waiters.changed(uid);
  }
}
