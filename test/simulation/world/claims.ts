// The cluster's side of claimed devices: whoever makes claims from templates, allocates them, reserves them for pods, and
// takes all that back when a pod is over; and what the drivers publish of their devices.
import type { Pod } from '../../../src/core/pod.ts';
import { Random } from '../engine/random.ts';
import { SHARED } from '../workload/claim-pods.ts';
import { DraDriver } from './dra-driver.ts';
import type { World } from './world.ts';

const GROUP = '/apis/resource.k8s.io/v1';
const CLAIMS = `${GROUP}/namespaces/default/resourceclaims`;
const SLICES = `${GROUP}/resourceslices`;
const PODS = '/api/v1/namespaces/default/pods';
const DRIVERS = ['a.sim.dra', 'b.sim.dra'] as const;
/** Claims that are made and reserved only when the pod is on the node already. */
const LATE = 0.2;
const LATE_MS = 10_000;
const PUBLISH_MS = 1000;

export type KnownClaim = { readonly name: string; readonly drivers: readonly string[] };
/** A pod with claims, and what they are: UIDs by the name of the entry in its spec. */
export type Holder = { readonly pod: Pod; readonly claims: Map<string, string> };

type Object = { readonly metadata: { readonly name: string; readonly uid?: string } };
type Reserved = { readonly resource: string; readonly name: string; readonly uid: string };

export class Claims {
  readonly drivers: readonly DraDriver[];
  /** All there ever were, by UID. */
  readonly known = new Map<string, KnownClaim>();
  /** Pods with claims that there ever were, by UID. */
  readonly holders = new Map<string, Holder>();
  /** Claims that were prepared when the agent's record of them was damaged: it cannot know of them any more. */
  readonly forgotten = new Set<string>();
  readonly #world: World;
  readonly #random: Random;
  readonly #over = new Set<string>();
  #made = 0;

  constructor(world: World, seed: number) {
    this.#world = world;
    this.#random = new Random(seed, 'claims');
    this.drivers = DRIVERS.map((name) => new DraDriver(world, name));
  }

  async furnish(): Promise<void> {
    const { api, scheduler } = this.#world;
    for (const [name, drivers] of Object.entries(SHARED)) await this.#make(name, drivers, {});
    api.store.onChange(({ resource, type, now }) => {
      const pod = now.object as unknown as Pod;
      const later = (ms: number, work: () => Promise<void>): void =>
        void scheduler.after(ms, () => void work(), scheduler.world);
      if (resource === 'resource.k8s.io/resourceslices' && type === 'DELETED')
        return later(PUBLISH_MS, () => this.#publish(now.object.metadata.name));
      if (resource !== 'pods' || pod.spec.resourceClaims === undefined) return;
      const { uid = '' } = pod.metadata;
      const isOver = type === 'DELETED' || pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
      if (!this.holders.has(uid)) {
        this.holders.set(uid, { pod, claims: new Map() });
        later(this.#random.chance(LATE) ? LATE_MS * this.#random.next() : 0, () => this.#reserve(pod));
      }
      if (!isOver || this.#over.has(uid)) return;
      this.#over.add(uid);
      later(PUBLISH_MS * this.#random.next(), () => this.#release(uid));
    });
    for (const driver of this.drivers) void driver.processes.start();
    for (const { name } of this.drivers) await this.#publish(name);
  }

  start(): void {
    for (const driver of this.drivers) void driver.processes.start();
  }

  forget(): void {
    for (const driver of this.drivers) driver.forget();
  }

  loseRecords(): void {
    for (const { prepared } of this.drivers) for (const claim of prepared.keys()) this.forgotten.add(claim);
  }

  isPrepared(claim: string): boolean {
    const { drivers = [] } = this.known.get(claim) ?? {};
    return this.drivers.every((driver) => !drivers.includes(driver.name) || driver.prepared.has(claim));
  }

  /** A driver that lives publishes again what somebody removed. */
  async #publish(driver: string): Promise<void> {
    const { api, scheduler } = this.#world;
    const mine = this.drivers.find(({ name }) => name === driver);
    if (mine === undefined) return;
    if (!mine.processes.isRunning)
      return void scheduler.after(PUBLISH_MS * 10, () => void this.#publish(driver), scheduler.world);
    const pool = { name: 'n1', generation: 1, resourceSliceCount: 1 };
    await api.admin('POST', SLICES, { metadata: { name: driver }, spec: { driver, nodeName: 'n1', pool } });
  }

  async #make(name: string, drivers: readonly string[], metadata: object): Promise<string> {
    const { api } = this.#world;
    const spec = { devices: { requests: [{ name: 'all', exactly: { deviceClassName: 'sim' } }] } };
    await must(api.admin('POST', CLAIMS, { metadata: { name, ...metadata }, spec }));
    const uid = this.#uidOf(name) ?? '';
    this.known.set(uid, { name, drivers });
    const results = drivers.map((driver) => ({ request: 'all', driver, pool: 'n1', device: name }));
    await must(api.admin('PATCH', `${CLAIMS}/${name}/status`, { status: { allocation: { devices: { results } } } }));
    return uid;
  }

  #uidOf(name: string): string | undefined {
    const found = this.#world.api.store.get('resource.k8s.io/resourceclaims', `default/${name}`);
    return (found?.object as unknown as Object | undefined)?.metadata.uid;
  }

  #reservedFor(name: string): readonly Reserved[] {
    const found = this.#world.api.store.get('resource.k8s.io/resourceclaims', `default/${name}`);
    return (
      (found?.object as unknown as { status?: { reservedFor?: Reserved[] } } | undefined)?.status?.reservedFor ?? []
    );
  }

  #setReserved(name: string, reservedFor: readonly Reserved[]): Promise<unknown> {
    return this.#world.api.admin('PATCH', `${CLAIMS}/${name}/status`, { status: { reservedFor } });
  }

  async #reserve(pod: Pod): Promise<void> {
    const { name: podName, uid = '' } = pod.metadata;
    if (this.#over.has(uid)) return;
    const me: Reserved = { resource: 'pods', name: podName, uid };
    const statuses: object[] = [];
    for (const entry of pod.spec.resourceClaims ?? []) {
      let name = entry.resourceClaimName;
      if (name === undefined) {
        name = `${podName}-${entry.name}-${++this.#made}`;
        const owner = { apiVersion: 'v1', kind: 'Pod', name: podName, uid, controller: true };
        const drivers = this.#random.pick([DRIVERS, DRIVERS.slice(0, 1), DRIVERS.slice(1)]);
        await this.#make(name, drivers, { ownerReferences: [owner] });
        statuses.push({ name: entry.name, resourceClaimName: name });
      }
      this.holders.get(uid)?.claims.set(entry.name, this.#uidOf(name) ?? '');
      await this.#setReserved(name, [...this.#reservedFor(name), me]);
    }
    if (statuses.length > 0)
      await this.#world.api.admin('PATCH', `${PODS}/${podName}/status`, {
        metadata: { uid },
        status: { resourceClaimStatuses: statuses },
      });
  }

  /** Claims of its own go with the pod. A shared one that nobody has any more may be made anew, under its name. */
  async #release(uid: string): Promise<void> {
    const { api } = this.#world;
    for (const claim of this.holders.get(uid)?.claims.values() ?? []) {
      const { name = '', drivers = [] } = this.known.get(claim) ?? {};
      if (this.#uidOf(name) !== claim) continue;
      const rest = this.#reservedFor(name).filter((user) => user.uid !== uid);
      await this.#setReserved(name, rest);
      const isShared = SHARED[name] !== undefined;
      if (isShared && (rest.length > 0 || !this.#random.chance(0.3))) continue;
      await api.admin('DELETE', `${CLAIMS}/${name}`, {});
      if (isShared) await this.#make(name, drivers, {});
    }
  }
}

async function must(answer: Promise<{ status: number; body: string }>): Promise<void> {
  const { status, body } = await answer;
  if (status >= 300) throw new Error(`the claim cannot be made: ${body}`);
}
