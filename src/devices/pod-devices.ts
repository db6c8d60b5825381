// Which container has which devices, and what its plugin answered when they were given out. The device manager writes it;
// the checkpoint keeps it over restarts.
import type { ContainerAllocateResponse } from './gen/device-plugin.ts';

export type Grant = {
  /** Device ids with the NUMA nodes they were near to. */
  readonly devices: ReadonlyMap<string, readonly number[]>;
  readonly response: ContainerAllocateResponse;
};

export type GrantEntry = {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly grant: Grant;
};

type ByResource = Map<string, Grant>;

const NO_GRANTS: ReadonlyMap<string, Grant> = new Map();

export class PodDevices {
  readonly #pods = new Map<string, Map<string, ByResource>>();

  set({ podUid, container, resource, grant }: GrantEntry): void {
    const pod = this.#pods.get(podUid) ?? new Map<string, ByResource>();
    this.#pods.set(podUid, pod);
    const grants = pod.get(container) ?? new Map<string, Grant>();
    pod.set(container, grants);
    grants.set(resource, grant);
  }

  hasPod(podUid: string): boolean {
    return this.#pods.has(podUid);
  }

  of(podUid: string, container: string): ReadonlyMap<string, Grant> {
    return this.#pods.get(podUid)?.get(container) ?? NO_GRANTS;
  }

  /** Ids of one resource that any container of the pod has. */
  ofPod(podUid: string, resource: string): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const grants of this.#pods.get(podUid)?.values() ?? [])
      for (const id of grants.get(resource)?.devices.keys() ?? []) ids.add(id);
    return ids;
  }

  /** Ids of one resource that anybody has. */
  allocated(resource: string): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const podUid of this.#pods.keys()) for (const id of this.ofPod(podUid, resource)) ids.add(id);
    return ids;
  }

  /** How many devices of each resource are given out. */
  allocatedCounts(): ReadonlyMap<string, number> {
    const names = new Set(this.entries().map((e) => e.resource));
    return new Map([...names].map((name) => [name, this.allocated(name).size]));
  }

  /** Pods that have one of these devices. */
  holders(resource: string, ids: readonly string[]): readonly string[] {
    return [...this.#pods.keys()].filter((podUid) => {
      const own = this.ofPod(podUid, resource);
      return ids.some((id) => own.has(id));
    });
  }

  /** Drops every other pod. Returns whether there was one. */
  retain(podUids: ReadonlySet<string>): boolean {
    const gone = [...this.#pods.keys()].filter((uid) => !podUids.has(uid));
    for (const uid of gone) this.#pods.delete(uid);
    return gone.length > 0;
  }

  entries(): readonly GrantEntry[] {
    const all: GrantEntry[] = [];
    for (const [podUid, containers] of this.#pods)
      for (const [container, grants] of containers)
        for (const [resource, grant] of grants) all.push({ podUid, container, resource, grant });
    return all;
  }
}
