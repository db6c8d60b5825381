// Which devices there are: for every resource what its plugin last listed, and since when the plugin is gone. Pure but for
// its state; the device manager is the only writer.
import { HEALTHY, type Devices } from './device.ts';

export type Amounts = {
  readonly capacity: ReadonlyMap<string, number>;
  readonly allocatable: ReadonlyMap<string, number>;
};

type Resource = {
  /** As last listed. */
  listed: Devices;
  healthy: ReadonlySet<string>;
  unhealthy: ReadonlySet<string>;
  /** Monotonic; absent while the plugin is connected. */
  stoppedAtMs?: number;
};

/** A plugin that left may come back within this time without the node losing the resource. */
export const STOP_GRACE_MS = 5 * 60_000;

const NONE: ReadonlySet<string> = new Set();
const NO_DEVICES: Devices = new Map();

export class Inventory {
  readonly #resources = new Map<string, Resource>();
  /** Reported as none for as long as this process lives: a key that vanished would look like a resource of the cluster. */
  readonly #forgotten = new Set<string>();

  /** Whether a plugin is or was registered for it, within the grace period. */
  has(resource: string): boolean {
    return this.#resources.has(resource);
  }

  /** All devices as last listed, also of a plugin that left. */
  listed(resource: string): Devices {
    return this.#resources.get(resource)?.listed ?? NO_DEVICES;
  }

  /** Devices that may be given out. */
  healthy(resource: string): ReadonlySet<string> {
    return this.#resources.get(resource)?.healthy ?? NONE;
  }

  resources(): readonly string[] {
    return [...this.#resources.keys()].sort();
  }

  /** Known from an earlier run: nothing can be had of it before its plugin comes back. */
  remember(resource: string, nowMs: number): void {
    this.#resources.set(resource, { listed: NO_DEVICES, healthy: NONE, unhealthy: NONE, stoppedAtMs: nowMs });
  }

  /** A plugin came (back); its devices are known with its first list. */
  connected(resource: string): void {
    const { stoppedAtMs: _, ...known } = this.#resources.get(resource) ?? {
      listed: NO_DEVICES,
      healthy: NONE,
      unhealthy: NONE,
    };
    this.#resources.set(resource, known);
    this.#forgotten.delete(resource);
  }

  /** The plugin's list replaces the one before. Returns the ids that are new or whose health changed. */
  replace(resource: string, devices: Devices): readonly string[] {
    const before = this.listed(resource);
    const ids = [...devices.keys()];
    const isHealthy = (id: string): boolean => devices.get(id)?.health === HEALTHY;
    this.#resources.set(resource, {
      listed: devices,
      healthy: new Set(ids.filter(isHealthy)),
      unhealthy: new Set(ids.filter((id) => !isHealthy(id))),
    });
    return ids.filter((id) => before.get(id)?.health !== devices.get(id)?.health);
  }

  /** The plugin left: none of its devices can be given out until it is back. */
  stopped(resource: string, nowMs: number): void {
    const known = this.#resources.get(resource);
    if (known === undefined) return;
    known.unhealthy = new Set([...known.unhealthy, ...known.healthy]);
    known.healthy = NONE;
    known.stoppedAtMs = nowMs;
  }

  /** Forgets what is gone for too long. Returns the names. */
  expire(nowMs: number): readonly string[] {
    const gone = [...this.#resources].filter(
      ([, { stoppedAtMs }]) => stoppedAtMs !== undefined && nowMs - stoppedAtMs > STOP_GRACE_MS,
    );
    for (const [name] of gone) {
      this.#resources.delete(name);
      this.#forgotten.add(name);
    }
    return gone.map(([name]) => name);
  }

  amounts(): Amounts {
    const capacity = new Map([...this.#forgotten].map((name) => [name, 0]));
    const allocatable = new Map(capacity);
    for (const [name, { healthy, unhealthy }] of this.#resources) {
      capacity.set(name, healthy.size + unhealthy.size);
      allocatable.set(name, healthy.size);
    }
    return { capacity, allocatable };
  }
}
