// Dynamic resource allocation: has drivers prepare the claims of a pod before its sandbox, tells which CDI devices its
// containers get, and has claims unprepared when their last pod is over. One operation at a time for each claim.
import type { PodUid } from '../core/ids.ts';
import { namespaceOf, uidOf, type AllocatedResourceStatus, type Container, type Pod } from '../core/pod.ts';
import type { ResourceClaim } from '../kube/resources.ts';
import { abortable } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import { fullErrorText } from '../lib/grpc/status.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Histogram } from '../lib/metrics.ts';
import { StateFile } from '../lib/state-file.ts';
import type { Runnable } from '../lib/supervise.ts';
import { formatClaims, parseClaims } from './checkpoint.ts';
import { ClaimCache, devicesFor, type ClaimEntry, type PreparedDevice } from './claim-cache.ts';
import type { DriverConnection } from './driver-connection.ts';
import type { Claim, Device } from './gen/dra-plugin.ts';
import type { KnownHealth } from './health.ts';
import { containerRequests, driversOf, podClaims, type PodClaim } from './pod-claims.ts';

export type DraManagerDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** Throws for a driver that is not registered. */
  readonly drivers: { get(driver: string): Pick<DriverConnection, 'prepare' | 'unprepare'> };
  /** Rejects with the API server's text. */
  readonly claim: (namespace: string, name: string, signal: AbortSignal) => Promise<ResourceClaim>;
  readonly pods: {
    /** Pods that are not over. */
    alive(): readonly Pod[];
    sourcesReady(): boolean;
    /** Whether any container of the pod runs. */
    isRunning(uid: PodUid): boolean;
  };
  readonly health: { of(driver: string, pool: string, device: string): KnownHealth };
  /** `dra_operations_duration_seconds{operation_name,is_error}`. */
  readonly durations: Histogram;
};

type Operation = 'PrepareResources' | 'UnprepareResources';

export type DraManagerOptions = {
  readonly checkpoint: string;
  readonly extendedResources: boolean;
  /** Claims may belong to a pod's group (gate `DRAWorkloadResourceClaims`). */
  readonly podGroups: boolean;
  /** Statuses carry the drivers' messages. */
  readonly healthMessages: boolean;
};

export type ClaimedDevices = {
  readonly name: string;
  readonly namespace: string;
  readonly devices: readonly (PreparedDevice & { readonly driver: string })[];
};

type Fetched = { readonly podClaim: PodClaim; readonly claim: ResourceClaim; readonly drivers: readonly string[] };

const RECONCILE_MS = 60_000;

export class DraManager implements Runnable {
  readonly name = 'dra-claims';
  readonly #deps: DraManagerDeps;
  readonly #o: DraManagerOptions;
  readonly #file: StateFile;
  readonly #cache = new ClaimCache();
  /** Claims that are being prepared or unprepared. */
  readonly #busy = new Map<string, Promise<void>>();
  /** The last save has failed, or is under way. */
  #isUnwritten = false;

  constructor(deps: DraManagerDeps, options: DraManagerOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#file = new StateFile(options.checkpoint, () => formatClaims(this.#cache.all()));
  }

  /** Reads what an earlier run left. Rejects on a damaged file: whose devices are in use must not be guessed. */
  async load(): Promise<void> {
    try {
      const text = await this.#file.read();
      for (const entry of text === undefined ? [] : parseClaims(text)) this.#cache.add(entry);
      if (text !== undefined) return;
    } catch (err) {
      throw new KubeletError(
        'invalid',
        `create ResourceClaim cache: GetOrCreate() on checkpoint state: failed to get checkpoint dra_manager_state: ${messageOf(err)}, please drain this node and delete the file "${this.#file.path}" before restarting Kubelet`,
      );
    }
    // The first, empty state: pods without claims run without it.
    await this.#save('first state').catch(this.#logUnwritten);
  }

  readonly #logUnwritten = (err: unknown): void =>
    this.#deps.log.error('state of claims was not written, trying again later', { path: this.#file.path, err });

  run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const loop = { name: this.name, everyMs: RECONCILE_MS, delayFirst: true };
    return runEvery(clock, log, loop, (stop) => this.#reconcile(stop), signal);
  }

  prepare(pod: Pod, signal: AbortSignal): Promise<void> {
    if (!this.#hasClaims(pod)) return this.#nothingToDo('PrepareResources');
    return this.#measured('PrepareResources', 'prepare dynamic resources', signal, () => {
      const claims = podClaims(pod, this.#o.extendedResources);
      return this.#exclusively(namespaceOf(pod), claims.map(nameOf), signal, () => this.#prepare(pod, claims, signal));
    });
  }

  /** What is recorded counts, not what the pod says: a claim that was never made must not keep the pod. */
  unprepare(pod: Pod, signal: AbortSignal): Promise<void> {
    const used = this.#cache.all().filter((claim) => claim.pods.has(uidOf(pod)));
    if (used.length === 0) return this.#nothingToDo('UnprepareResources');
    const names = used.map((claim) => claim.name);
    return this.#measured('UnprepareResources', 'unprepare dynamic resources', signal, () =>
      this.#unprepare(uidOf(pod), namespaceOf(pod), names, signal),
    );
  }

  #hasClaims(pod: Pod): boolean {
    return (pod.spec.resourceClaims ?? []).length > 0 || pod.status?.extendedResourceClaimStatus !== undefined;
  }

  /** Pods without claims count too, as upstream. */
  #nothingToDo(operation: Operation): Promise<void> {
    this.#deps.durations.observe(0, { operation_name: operation, is_error: 'false' });
    return Promise.resolve();
  }

  async #measured(operation: Operation, what: string, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { clock, durations } = this.#deps;
    const begun = clock.monotonic();
    let failed = true;
    try {
      await work();
      failed = false;
    } catch (err) {
      signal.throwIfAborted();
      throw new KubeletError('unavailable', `${what}: ${messageOf(err)}`, { cause: err });
    } finally {
      const labels = { operation_name: operation, is_error: String(failed) };
      durations.observe((clock.monotonic() - begun) / 1000, labels);
    }
  }

  /** Two pods that share a claim take turns; a driver that hangs holds up nobody else. */
  async #exclusively(
    namespace: string,
    names: readonly string[],
    signal: AbortSignal,
    work: () => Promise<void>,
  ): Promise<void> {
    const keys = names.map((name) => `${namespace}/${name}`);
    const before = Promise.all(keys.map((key) => this.#busy.get(key) ?? Promise.resolve()));
    const done = Promise.withResolvers<void>();
    for (const key of keys) this.#busy.set(key, done.promise);
    try {
      await abortable(signal, before);
      await work();
    } finally {
      void before.then(() => {
        for (const key of keys) if (this.#busy.get(key) === done.promise) this.#busy.delete(key);
        done.resolve();
      });
    }
  }

  async #prepare(pod: Pod, claims: readonly PodClaim[], signal: AbortSignal): Promise<void> {
    const fetched: Fetched[] = [];
    // All is checked before anything is recorded: a pod that fails here can be deleted without any driver.
    for (const podClaim of claims) {
      const claim = await this.#fetch(pod, podClaim, signal);
      const drivers = driversOf(pod, podClaim, claim, this.#o.podGroups);
      for (const driver of drivers) this.#deps.drivers.get(driver);
      fetched.push({ podClaim, claim, drivers });
    }
    const entries: ClaimEntry[] = [];
    for (const { claim, drivers } of fetched) {
      const entry = this.#entryFor(claim, drivers);
      entry.pods.add(uidOf(pod));
      if (!entry.prepared || entry.isDoubtful === true) entries.push(entry);
    }
    if (fetched.length > 0) await this.#save('checkpoint ResourceClaim cache');
    for (const [driver, batch] of batches(entries)) await this.#prepareBatch(driver, batch, signal);
    for (const entry of entries) Object.assign(entry, { prepared: true, isDoubtful: false });
    if (entries.length > 0) await this.#save('checkpoint ResourceClaim state');
  }

  async #fetch(pod: Pod, { claimName }: PodClaim, signal: AbortSignal): Promise<ResourceClaim> {
    try {
      return await this.#deps.claim(namespaceOf(pod), claimName, signal);
    } catch (err) {
      throw new KubeletError('unavailable', `fetch ResourceClaim ${claimName}: ${messageOf(err)}`, { cause: err });
    }
  }

  #entryFor({ metadata }: ResourceClaim, drivers: readonly string[]): ClaimEntry {
    const { name, namespace = '', uid = '' } = metadata;
    const known = this.#cache.get(namespace, name);
    if (known !== undefined) {
      if (known.uid === uid) return known;
      throw new KubeletError(
        'conflict',
        `old ResourceClaim with same name ${name} and different UID ${known.uid} still exists (previous pod force-deleted?!)`,
      );
    }
    const entry: ClaimEntry = {
      uid,
      name,
      namespace,
      pods: new Set(),
      drivers: new Map(drivers.map((driver) => [driver, []])),
      prepared: false,
    };
    this.#cache.add(entry);
    return entry;
  }

  async #prepareBatch(driver: string, claims: readonly ClaimEntry[], signal: AbortSignal): Promise<void> {
    const plugin = this.#deps.drivers.get(driver);
    const method = 'NodePrepareResources';
    const { claims: results } = await plugin.prepare(claims.map(claimOf), signal).catch(named(method, signal));
    for (const { key, value } of results) {
      const entry = claims.find((c) => c.uid === key);
      if (entry === undefined) throw unknownClaim(method, key);
      if (value?.error) throw claimFailed(method, entry, value.error);
      entry.drivers.set(driver, (value?.devices ?? []).map(preparedDevice));
    }
    skippedSome(method, claims.length - results.length);
  }

  #unprepare(uid: string, namespace: string, names: readonly string[], signal: AbortSignal): Promise<void> {
    return this.#exclusively(namespace, names, signal, () => this.#release(uid, namespace, names, signal));
  }

  async #release(uid: string, namespace: string, names: readonly string[], signal: AbortSignal): Promise<void> {
    const last: ClaimEntry[] = [];
    for (const name of names) {
      const entry = this.#cache.get(namespace, name);
      if (entry === undefined) continue;
      // Others use it still; only the reference goes.
      if (!entry.pods.has(uid) || this.#hasOthers(entry, uid)) entry.pods.delete(uid);
      else last.push(entry);
    }
    try {
      for (const [driver, claims] of batches(last)) await this.#unprepareBatch(driver, claims, signal);
    } catch (err) {
      // A driver may have done it all the same: for the next pod that uses the claim it is asked again.
      for (const entry of last) entry.isDoubtful = true;
      throw err;
    }
    for (const entry of last) this.#cache.delete(entry);
    await this.#save('checkpoint ResourceClaim state');
  }

  /** One that is gone, deleted by force, is none: when this pod is said to be over, others may have the devices. */
  #hasOthers({ pods: users }: ClaimEntry, uid: string): boolean {
    const areKnown = this.#deps.pods.sourcesReady();
    return [...users].some((user) => user !== uid && (!areKnown || this.#isHeldBy(user as PodUid)));
  }

  async #unprepareBatch(driver: string, claims: readonly ClaimEntry[], signal: AbortSignal): Promise<void> {
    const plugin = this.#deps.drivers.get(driver);
    const method = 'NodeUnprepareResources';
    const { claims: results } = await plugin.unprepare(claims.map(claimOf), signal).catch(named(method, signal));
    for (const { key, value } of results) {
      const entry = claims.find((c) => c.uid === key);
      if (entry === undefined) throw unknownClaim(method, key);
      if (value?.error) throw claimFailed(method, entry, value.error);
    }
    skippedSome(method, claims.length - results.length);
  }

  /** Claims of pods that went without a word: deleted by force, or while the kubelet was down. */
  async #reconcile(signal: AbortSignal): Promise<void> {
    const { pods, log } = this.#deps;
    if (this.#isUnwritten) await this.#save('checkpoint ResourceClaim state').catch(this.#logUnwritten);
    if (!pods.sourcesReady()) return;
    for (const { namespace, name, pods: users } of this.#cache.all())
      for (const uid of users) {
        if (this.#isHeldBy(uid as PodUid)) continue;
        try {
          await this.#unprepare(uid, namespace, [name], signal);
        } catch (err) {
          if (signal.aborted) return;
          log.warn('claim of a pod that is gone stays prepared for now', { claim: `${namespace}/${name}`, uid, err });
        }
      }
  }

  /** Asked anew for each: while a driver is slow, pods come. A pod that is gone may have to be stopped still. */
  #isHeldBy(uid: PodUid): boolean {
    const { pods } = this.#deps;
    return pods.isRunning(uid) || pods.alive().some((pod) => uidOf(pod) === uid);
  }

  async #save(what: string): Promise<void> {
    this.#isUnwritten = true;
    try {
      await this.#file.save();
      this.#isUnwritten = false;
    } catch (err) {
      throw new KubeletError('internal', `${what}: ${messageOf(err)}`, { cause: err });
    }
  }

  // ---- containers ----

  /** CDI devices of the container. Throws while a claim is not prepared. */
  cdiDevicesOf(pod: Pod, container: Container): readonly string[] {
    return containerRequests(pod, container, this.#o.extendedResources).flatMap(({ claimName, request }) => {
      const entry = this.#cache.get(namespaceOf(pod), claimName);
      if (entry === undefined)
        throw new KubeletError(
          'internal',
          `internal error: unable to get claim info for ResourceClaim ${claimName} in namespace ${namespaceOf(pod)}`,
        );
      return devicesFor(entry, request).flatMap(({ device }) => device.cdiIds);
    });
  }

  /** For the pod resources API: every claim the container uses; none as long as one of them is not known here. */
  claimsOf(pod: Pod, container: Container): readonly ClaimedDevices[] {
    const names = new Set(this.#requestsOf(pod, container).map((r) => r.claimName));
    const namespace = namespaceOf(pod);
    const entries = [...names].map((name) => this.#cache.get(namespace, name));
    if (!entries.every((entry) => entry !== undefined)) return [];
    return entries.map((entry) => {
      const devices = devicesFor(entry, '').map(({ driver, device }) => ({ ...device, driver }));
      return { name: entry.name, namespace, devices };
    });
  }

  /** How the container's claimed devices are, for its status. Undefined when it has none. */
  healthOf(pod: Pod, container: Container): readonly AllocatedResourceStatus[] | undefined {
    const listed = this.#requestsOf(pod, container).flatMap(({ claimName, request, statusName }) => {
      const entry = this.#cache.get(namespaceOf(pod), claimName);
      if (entry === undefined || statusName === undefined) return [];
      // Devices may share a CDI device: the API server takes no status that names a resource twice.
      const resources = new Map<string, NonNullable<AllocatedResourceStatus['resources']>[number]>();
      for (const { driver, device } of devicesFor(entry, baseRequest(request))) {
        const resourceID = device.cdiIds[0] ?? `${driver}/${device.pool}/${device.device}`;
        if (resources.has(resourceID)) continue;
        const { health, message } = this.#deps.health.of(driver, device.pool, device.device);
        const told = this.#o.healthMessages && message !== '' ? { message } : {};
        resources.set(resourceID, { resourceID, health, ...told });
      }
      return resources.size === 0 ? [] : [{ name: statusName, resources: [...resources.values()] }];
    });
    return listed.length === 0 ? undefined : listed;
  }

  /** A pod whose claims are still to be made has none to show. */
  #requestsOf(pod: Pod, container: Container): ReturnType<typeof containerRequests> {
    try {
      return containerRequests(pod, container, this.#o.extendedResources);
    } catch {
      return [];
    }
  }

  /** Pods to tell when a driver's devices changed. */
  podsOf(driver: string): readonly PodUid[] {
    return [...this.#cache.podsOf(driver)] as PodUid[];
  }

  /** Prepared claims by driver, and `<any>` for all. */
  inUse(): ReadonlyMap<string, number> {
    const prepared = this.#cache.all().filter((claim) => claim.prepared);
    const counts = new Map([['<any>', prepared.length]]);
    for (const claim of prepared)
      for (const driver of claim.drivers.keys()) counts.set(driver, (counts.get(driver) ?? 0) + 1);
    return counts;
  }
}

function batches(claims: readonly ClaimEntry[]): ReadonlyMap<string, readonly ClaimEntry[]> {
  const byDriver = new Map<string, ClaimEntry[]>();
  for (const claim of claims)
    for (const driver of claim.drivers.keys()) {
      const batch = byDriver.get(driver) ?? [];
      batch.push(claim);
      byDriver.set(driver, batch);
    }
  return byDriver;
}

/** `gpu/large`, one of several alternatives, is prepared for `gpu`. */
const baseRequest = (request: string): string => request.split('/')[0] ?? '';

const nameOf = (claim: PodClaim): string => claim.claimName;

const claimOf = ({ namespace, uid, name }: ClaimEntry): Claim => ({ namespace, uid, name });

const preparedDevice = (device: Device): PreparedDevice => ({
  pool: device.poolName,
  device: device.deviceName,
  ...(device.shareId === '' ? {} : { shareId: device.shareId }),
  requestNames: device.requestNames,
  cdiIds: device.cdiDeviceIds,
});

const named =
  (method: string, signal: AbortSignal) =>
  (err: unknown): never => {
    signal.throwIfAborted();
    throw new KubeletError('unavailable', `${method}: ${fullErrorText(err)}`, { cause: err });
  };

const unknownClaim = (method: string, uid: string): KubeletError =>
  new KubeletError('invalid', `${method} returned result for unknown claim UID ${uid}`);

const claimFailed = (method: string, { name }: ClaimEntry, error: string): KubeletError =>
  new KubeletError('unavailable', `${method} failed for ResourceClaim ${name}: ${error}`);

function skippedSome(method: string, count: number): void {
  if (count > 0) throw new KubeletError('invalid', `${method} skipped ${count} ResourceClaims`);
}
