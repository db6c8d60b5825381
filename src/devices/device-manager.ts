// Gives devices to containers and remembers who has which. Plugins list the devices; admission (or the topology manager)
// asks for hints and allocation; the runtime asks what a container gets. Must never give one device to two pods, nor take
// one from a pod that runs.
import type { PodUid } from '../core/ids.ts';
import { isSidecar, podKey, uidOf, type AllocatedResourceStatus, type Container, type Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Histogram } from '../lib/metrics.ts';
import { retryUntilDone } from '../lib/retry.ts';
import type { HintProvider, HintsByResource, TopologyHint } from '../resources/topology/hint-provider.ts';
import { formatCheckpoint } from './checkpoint.ts';
import { CheckpointFile } from './checkpoint-file.ts';
import { beginChoice, finishChoice, hasTopology, type Question } from './choose-devices.ts';
import { containerOptions, type DeviceAdditions } from './container-options.ts';
import { HEALTHY, type Devices } from './device.ts';
import { Inventory, type Amounts } from './inventory.ts';
import type { PluginConnection } from './plugin-connection.ts';
import { PodDevices, type Grant } from './pod-devices.ts';
import { containerRequests, podRequests } from './requests.ts';
import { deviceHints } from './topology-hints.ts';

/** What is asked of a plugin. */
export type DevicePluginCalls = Pick<PluginConnection, 'resource' | 'options' | 'preferred' | 'allocate' | 'preStart'>;

export type DeviceManagerDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly plugins: { get(resource: string): DevicePluginCalls | undefined };
  readonly pods: {
    /** Active pods, and those that admission has still to judge. */
    alive(): readonly Pod[];
    /** Before this nothing is dropped: pods that nobody named yet may still be there. */
    sourcesReady(): boolean;
    /** Whether any container of the pod runs, or the one of this name. */
    isRunning(uid: PodUid, container?: string): boolean;
  };
  readonly numaNodes: () => readonly number[];
  /** A pod's device changed its health. */
  readonly onHealthChange: (uid: PodUid) => void;
  /** What the node can offer changed. */
  readonly onAmounts: () => void;
  /** A resource whose plugin left for good is with no container any more. */
  readonly onGone?: (resource: string) => void;
  /** `kubelet_device_plugin_alloc_duration_seconds{resource_name}`. */
  readonly durations: Histogram;
};

export type DevicePlace = {
  readonly resource: string;
  readonly id: string;
  /** Absent when the device is near no NUMA node in particular. */
  readonly node?: number;
};

type Need = { readonly pod: Pod; readonly container: Container; readonly resource: string; readonly count: number };

export class DeviceManager implements HintProvider {
  readonly name = 'devices';
  readonly #deps: DeviceManagerDeps;
  readonly #file: CheckpointFile;
  readonly #inventory = new Inventory();
  readonly #grants = new PodDevices();
  /** Chosen, while the plugin is asked. */
  readonly #pending = new Set<{ readonly resource: string; readonly ids: readonly string[] }>();
  /** What finished init containers of a pod leave to its next ones, by resource. */
  readonly #reusable = new Map<string, Map<string, Set<string>>>();
  /** Of containers admitted by this process. */
  readonly #affinities = new Map<string, readonly number[] | undefined>();
  /** Resources whose plugin left for good, and of which something may be kept still. */
  readonly #leaving = new Set<string>();
  /** Writes what changed since it was last waited for. */
  #saving: Promise<void> | undefined;
  #isForgotten = false;

  constructor(deps: DeviceManagerDeps, options: { readonly checkpoint: string }) {
    this.#deps = deps;
    this.#file = new CheckpointFile(options.checkpoint, () => this.#checkpoint(), deps.log);
  }

  /** Reads what an earlier run left; its resources have no devices until their plugins are back. */
  async load(): Promise<void> {
    const { log } = this.#deps;
    const { path } = this.#file;
    await this.#read().catch((err: unknown) => log.error('device checkpoint cannot be read', { path, err }));
  }

  /** Resolves once what an earlier run left is read: an error of the disk may pass. */
  async loaded(signal: AbortSignal): Promise<void> {
    if (this.#file.isRead) return;
    const message = 'device checkpoint cannot be read, trying again';
    await retryUntilDone(this.#deps, { message, path: this.#file.path }, () => this.#read(), signal);
  }

  async #read(): Promise<void> {
    const found = await this.#file.read();
    this.#isForgotten = found === undefined;
    if (found === undefined) return;
    for (const entry of found.grants) this.#grants.set(entry);
    const now = this.#deps.clock.monotonic();
    for (const resource of found.registered.keys())
      if (!this.#inventory.has(resource)) this.#inventory.remember(resource, now);
    this.#deps.onAmounts();
  }

  /** No earlier run left anything: the node's device counts are from another life. */
  get isForgotten(): boolean {
    return this.#isForgotten;
  }

  // ---- plugins ----

  connected(resource: string): void {
    this.#inventory.connected(resource);
  }

  listed(resource: string, devices: Devices): void {
    const changed = this.#inventory.replace(resource, devices);
    for (const uid of this.#grants.holders(resource, changed)) this.#deps.onHealthChange(uid as PodUid);
    this.#deps.onAmounts();
    this.#saveLater();
  }

  stopped(resource: string): void {
    this.#inventory.stopped(resource, this.#deps.clock.monotonic());
    this.#deps.onAmounts();
  }

  /** Capacity and allocatable of the node; a resource whose plugin left for good counts as none. */
  amounts(): Amounts {
    const expired = this.#inventory.expire(this.#deps.clock.monotonic());
    for (const name of expired) this.#leaving.add(name);
    if (expired.length > 0) this.#saveLater();
    this.#forgetGone();
    return this.#inventory.amounts();
  }

  /** Nothing is kept of resources that come and go under names of their own, once nobody holds a device of theirs. */
  #forgetGone(): void {
    for (const name of this.#leaving) {
      const isBack = this.#inventory.has(name);
      if (!isBack && this.#grants.allocated(name).size > 0) continue;
      this.#leaving.delete(name);
      if (isBack) continue;
      this.#deps.durations.remove({ resource_name: name });
      this.#deps.onGone?.(name);
    }
  }

  /** At least this much the node has, in the eyes of a pod that has its devices already: its plugin may still be away. */
  allocatedTo(pod: Pod): ReadonlyMap<string, number> {
    return this.#grants.hasPod(uidOf(pod)) ? this.#grants.allocatedCounts() : new Map();
  }

  // ---- hints and allocation ----

  hints(pod: Pod, container: Container): HintsByResource {
    const uid = uidOf(pod);
    const wanted = containerRequests(pod, container, (name) => this.#isPluginResource(name));
    if (wanted.size > 0) this.#dropStale(pod);
    return Object.fromEntries(
      [...wanted].map(([resource, requested]) => {
        const held = this.#grants.of(uid, container.name).get(resource)?.devices.keys() ?? [];
        return [resource, this.#hintsFor(resource, requested, [...held], this.#reusableOf(uid).get(resource) ?? [])];
      }),
    );
  }

  podHints(pod: Pod): HintsByResource {
    const wanted = podRequests(pod, (name) => this.#isPluginResource(name));
    if (wanted.size > 0) this.#dropStale(pod);
    return Object.fromEntries(
      [...wanted].map(([resource, requested]) => [
        resource,
        this.#hintsFor(resource, requested, [...this.#grants.ofPod(uidOf(pod), resource)], []),
      ]),
    );
  }

  #hintsFor(
    resource: string,
    requested: number,
    held: readonly string[],
    reusable: Iterable<string>,
  ): readonly TopologyHint[] | undefined {
    const devices = this.#inventory.listed(resource);
    if (!hasTopology(devices)) return undefined;
    const shared = { requested, devices, numaNodes: this.#deps.numaNodes() };
    if (held.length > 0) return held.length === requested ? deviceHints({ ...shared, free: held, reusable: [] }) : [];
    const free = this.#free(resource);
    const own = [...reusable];
    if (new Set([...free, ...own]).size < requested) return [];
    return deviceHints({ ...shared, free, reusable: own });
  }

  /** Gives the container its devices, if it has none yet. Rejects with the text that the pod's status shows. */
  async allocate(pod: Pod, container: Container, affinity: TopologyHint, signal: AbortSignal): Promise<void> {
    if (containerRequests(pod, container, (name) => this.#isPluginResource(name)).size === 0) return;
    this.#affinities.set(keyOf(uidOf(pod), container.name), affinity.numaNodes);
    // A pod that ran before this process did keeps what it has: its plugin may not be back yet.
    const adopted = this.#deps.pods.isRunning(uidOf(pod));
    await this.#allocate(pod, container, adopted, signal);
  }

  async #allocate(pod: Pod, container: Container, adopted: boolean, signal: AbortSignal): Promise<void> {
    const uid = uidOf(pod);
    const wanted = containerRequests(pod, container, (name) => this.#isPluginResource(name));
    if (wanted.size === 0) return;
    this.#dropStale(pod);
    const reusable = this.#reusableOf(uid);
    let granted = false;
    for (const [resource, count] of wanted) {
      const need: Need = { pod, container, resource, count };
      if (this.#mustAllocate(need, adopted)) {
        await this.#allocateResource(need, signal);
        granted = true;
      }
    }
    // A regular init container is over before the next ones begin; a sidecar stays.
    const init = (pod.spec.initContainers ?? []).find((c) => c.name === container.name);
    const passesOn = init !== undefined && !isSidecar(init);
    for (const [resource, { devices }] of this.#grants.of(uid, container.name)) {
      const ids = reusable.get(resource) ?? new Set();
      for (const id of devices.keys())
        if (passesOn) ids.add(id);
        else ids.delete(id);
      reusable.set(resource, ids);
    }
    if (granted) this.#saveLater();
  }

  async #allocateResource(need: Need, signal: AbortSignal): Promise<void> {
    const { pod, container, resource } = need;
    const uid = uidOf(pod);
    this.#requireKnownHolders(resource);
    const choice = beginChoice({
      resource,
      needed: need.count,
      reusable: this.#reusableOf(uid).get(resource) ?? [],
      free: this.#free(resource),
      devices: this.#inventory.listed(resource),
      affinity: this.#affinities.get(keyOf(uid, container.name)),
    });
    const plugin = this.#deps.plugins.get(resource);
    if (plugin === undefined) throw new KubeletError('unavailable', `unknown Device Plugin ${resource}`);
    const preferred = await this.#preferred(plugin, choice.question, signal);
    const ids = finishChoice(choice, preferred);
    const taken = this.#taken(resource, uid);
    const lost = ids.filter((id) => taken.has(id));
    if (lost.length > 0)
      throw new KubeletError('conflict', `devices of ${resource} were given out meanwhile: ${lost.join(', ')}`);
    const response = await this.#ask(plugin, ids, signal);
    const listed = this.#inventory.listed(resource);
    const devices = new Map(ids.map((id) => [id, listed.get(id)?.nodes ?? []]));
    this.#grants.set({ podUid: uid, container: container.name, resource, grant: { devices, response } });
  }

  /** Unknown is not free: throws while a container that asks for the resource runs and nobody knows with which devices. */
  #requireKnownHolders(resource: string): void {
    this.#file.requireRead();
    for (const pod of this.#deps.pods.alive())
      for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
        if (containerRequests(pod, container, (name) => name === resource).size === 0) continue;
        const uid = uidOf(pod);
        if (this.#grants.of(uid, container.name).has(resource)) continue;
        if (!this.#deps.pods.isRunning(uid, container.name)) continue;
        throw new KubeletError(
          'unavailable',
          `devices of ${resource} are not given out: container ${container.name} of pod ${podKey(pod)} runs with devices that ${this.#file.path} does not name; delete that pod`,
        );
      }
  }

  /** Throws when the container must not run with what it has, or cannot have what it asks for. */
  #mustAllocate({ pod, container, resource, count }: Need, adopted: boolean): boolean {
    const uid = uidOf(pod);
    const held = this.#grants.of(uid, container.name).get(resource)?.devices;
    if (held !== undefined && held.size !== count)
      throw new KubeletError(
        'invalid',
        `pod "${uid}" container "${container.name}" changed request for resource "${resource}" from ${held.size} to ${count}`,
      );
    if (adopted) return false;
    if (!this.#inventory.has(resource))
      throw new KubeletError('unavailable', `cannot allocate unregistered device ${resource}`);
    const healthy = this.#inventory.healthy(resource);
    if (healthy.size === 0)
      throw new KubeletError(
        'unavailable',
        `no healthy devices present; cannot allocate unhealthy devices ${resource}`,
      );
    if (held === undefined) return true;
    if (![...held.keys()].every((id) => healthy.has(id)))
      throw new KubeletError(
        'unavailable',
        `previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${resource}`,
      );
    return false;
  }

  async #preferred(
    plugin: DevicePluginCalls,
    question: Question | undefined,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    if (question === undefined || !plugin.options.getPreferredAllocationAvailable) return [];
    return plugin.preferred(
      {
        availableDeviceIDs: [...question.available],
        mustIncludeDeviceIDs: [...question.mustInclude],
        allocationSize: question.size,
      },
      signal,
    );
  }

  async #ask(plugin: DevicePluginCalls, ids: readonly string[], signal: AbortSignal): Promise<Grant['response']> {
    const { clock, durations } = this.#deps;
    const pending = { resource: plugin.resource, ids };
    this.#pending.add(pending);
    const begun = clock.monotonic();
    try {
      return await plugin.allocate(ids, signal);
    } finally {
      this.#pending.delete(pending);
      durations.observe((clock.monotonic() - begun) / 1000, { resource_name: plugin.resource });
    }
  }

  /** Ids of the resource that somebody else has, or is about to get. */
  #taken(resource: string, except?: PodUid): ReadonlySet<string> {
    const taken = new Set(this.#grants.allocated(resource));
    if (except !== undefined) for (const id of this.#reusableOf(except).get(resource) ?? []) taken.delete(id);
    for (const pending of this.#pending) if (pending.resource === resource) for (const id of pending.ids) taken.add(id);
    return taken;
  }

  #free(resource: string): readonly string[] {
    const taken = this.#taken(resource);
    return [...this.#inventory.healthy(resource)].filter((id) => !taken.has(id));
  }

  #isPluginResource(name: string): boolean {
    return name.includes('/') && (this.#inventory.has(name) || this.#grants.allocated(name).size > 0);
  }

  #reusableOf(uid: PodUid): Map<string, Set<string>> {
    const own = this.#reusable.get(uid) ?? new Map<string, Set<string>>();
    this.#reusable.set(uid, own);
    return own;
  }

  /**
   * What ended pods had is free again. `admitting` may be unknown to everybody else, so may a pod whose containers run: it was
   * deleted while no kubelet ran, and is being stopped.
   */
  #dropStale(admitting?: Pod): void {
    const { pods } = this.#deps;
    if (!pods.sourcesReady()) return;
    const alive = new Set<string>(pods.alive().map(uidOf));
    if (admitting !== undefined) alive.add(uidOf(admitting));
    for (const { podUid } of this.#grants.entries())
      if (!alive.has(podUid) && pods.isRunning(podUid as PodUid)) alive.add(podUid);
    this.#grants.retain(alive);
    for (const uid of this.#reusable.keys()) if (!alive.has(uid)) this.#reusable.delete(uid);
    for (const key of this.#affinities.keys()) if (!alive.has(key.split('/')[0] ?? '')) this.#affinities.delete(key);
  }

  // ---- containers ----

  /** What the container gets, before each of its starts. */
  async optionsFor(pod: Pod, container: Container, signal: AbortSignal): Promise<DeviceAdditions> {
    const uid = uidOf(pod);
    const wanted = containerRequests(pod, container, (name) => this.#isPluginResource(name));
    let missing = false;
    for (const resource of wanted.keys()) {
      await this.#preStart(uid, container.name, resource, signal);
      if (!this.#grants.of(uid, container.name).has(resource)) missing = true;
    }
    const isAlive = (): boolean => this.#deps.pods.alive().some((p) => uidOf(p) === uid);
    if (missing && isAlive()) await this.#allocate(pod, container, false, signal);
    if (wanted.size > 0) await this.saved();
    return containerOptions([...this.#grants.of(uid, container.name).values()].map((grant) => grant.response));
  }

  async #preStart(uid: PodUid, container: string, resource: string, signal: AbortSignal): Promise<void> {
    const plugin = this.#deps.plugins.get(resource);
    if (plugin === undefined || !plugin.options.preStartRequired) return;
    const held = this.#grants.of(uid, container).get(resource);
    if (held === undefined)
      throw new KubeletError(
        'notFound',
        `no devices found allocated in local cache for pod ${uid}, container ${container}, resource ${resource}`,
      );
    await plugin.preStart([...held.devices.keys()], signal);
  }

  /** How the container's devices are, for its status. Undefined when it has none. */
  healthOf(uid: PodUid, container: string): readonly AllocatedResourceStatus[] | undefined {
    const grants = [...this.#grants.of(uid, container)].sort(([a], [b]) => (a < b ? -1 : 1));
    if (grants.length === 0) return undefined;
    return grants.map(([name, { devices }]) => ({
      name,
      resources: [...devices.keys()].sort().map((resourceID) => {
        const health = this.#inventory.listed(name).get(resourceID)?.health ?? HEALTHY;
        return { resourceID, health: health === HEALTHY ? 'Healthy' : 'Unhealthy' } as const;
      }),
    }));
  }

  // ---- for the pod resources API ----

  devicesOf(uid: PodUid, container: string): readonly DevicePlace[] {
    this.#dropStale();
    return [...this.#grants.of(uid, container)].flatMap(([resource, { devices }]) =>
      [...devices].flatMap(([id, nodes]) => placesOf(resource, id, nodes)),
    );
  }

  allocatableDevices(): readonly DevicePlace[] {
    return this.#inventory.resources().flatMap((resource) => {
      const healthy = this.#inventory.healthy(resource);
      const devices = [...this.#inventory.listed(resource).values()].filter((d) => healthy.has(d.id));
      return devices.flatMap(({ id, nodes }) => placesOf(resource, id, nodes));
    });
  }

  // ---- checkpoint ----

  #checkpoint(): string {
    const registered = new Map(
      this.#inventory.resources().map((name) => [name, [...this.#inventory.healthy(name)].sort()]),
    );
    return formatCheckpoint({ grants: this.#grants.entries(), registered });
  }

  async #save(): Promise<void> {
    try {
      await this.#file.save();
    } catch (err) {
      throw new KubeletError(
        'internal',
        `failed to write checkpoint file "kubelet_internal_checkpoint": ${messageOf(err)}`,
        {
          cause: err,
        },
      );
    }
  }

  /** Admission does not wait for the disk; the container's creation does. */
  #saveLater(): void {
    const saving = this.#save();
    saving.catch((err: unknown) => this.#deps.log.error('device checkpoint was not written', { err }));
    this.#saving = saving;
  }

  /** Resolves when everything is on disk; what failed is tried once more. */
  async saved(): Promise<void> {
    const saving = this.#saving;
    if (saving === undefined) return;
    await saving.catch(() => this.#save());
    if (this.#saving === saving) this.#saving = undefined;
  }
}

const keyOf = (uid: PodUid, container: string): string => `${uid}/${container}`;

const placesOf = (resource: string, id: string, nodes: readonly number[]): DevicePlace[] =>
  nodes.length === 0 ? [{ resource, id }] : nodes.map((node) => ({ resource, id, node }));
