// The claims that pods on this node use: which pods, which devices each driver prepared for them. The DRA manager is the
// only writer; the checkpoint keeps it over restarts.

export type PreparedDevice = {
  readonly pool: string;
  readonly device: string;
  readonly shareId?: string;
  /** Requests of the claim it serves; none means all. */
  readonly requestNames: readonly string[];
  readonly cdiIds: readonly string[];
};

export type ClaimEntry = {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly pods: Set<string>;
  /** By driver. */
  readonly drivers: Map<string, readonly PreparedDevice[]>;
  /** By this process: drivers are asked again after a restart. */
  prepared: boolean;
  /** An attempt to unprepare it failed: some driver may have done it. */
  isDoubtful?: boolean;
};

export class ClaimCache {
  readonly #claims = new Map<string, ClaimEntry>();

  get(namespace: string, name: string): ClaimEntry | undefined {
    return this.#claims.get(`${namespace}/${name}`);
  }

  add(entry: ClaimEntry): void {
    this.#claims.set(`${entry.namespace}/${entry.name}`, entry);
  }

  delete(entry: ClaimEntry): void {
    this.#claims.delete(`${entry.namespace}/${entry.name}`);
  }

  all(): readonly ClaimEntry[] {
    return [...this.#claims.values()];
  }

  /** Pods that have a device of this driver. */
  podsOf(driver: string): ReadonlySet<string> {
    const pods = new Set<string>();
    for (const claim of this.#claims.values())
      if (claim.drivers.has(driver)) for (const uid of claim.pods) pods.add(uid);
    return pods;
  }
}

/** The claim's devices that serve a request; an empty request is all of them. */
export function devicesFor(
  entry: ClaimEntry,
  request: string,
): readonly { readonly driver: string; readonly device: PreparedDevice }[] {
  return [...entry.drivers].flatMap(([driver, devices]) =>
    devices
      .filter((d) => request === '' || d.requestNames.length === 0 || d.requestNames.includes(request))
      .map((device) => ({ driver, device })),
  );
}
