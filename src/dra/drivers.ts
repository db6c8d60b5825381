// The DRA drivers registered on this node. One driver may have several instances for the time of an update: the newest
// that is connected is used.
import { KubeletError } from '../lib/errors.ts';
import type { DeviceHealth } from './gen/dra-health.ts';
import { DriverConnection, type DraVersion, type DriverDeps } from './driver-connection.ts';

export type DriversDeps = Omit<DriverDeps, 'events'> & {
  readonly events: {
    /** Some instance of the driver is connected. */
    onPresent(driver: string): void;
    /** No instance of the driver is connected any more. */
    onAbsent(driver: string): void;
    onHealth(driver: string, devices: readonly DeviceHealth[]): void;
    onHealthLost(driver: string): void;
  };
};

/** What the plugin folder says of a plugin; `plugins/` has the same. */
type FoundPlugin = { readonly name: string; readonly endpoint: string; readonly versions: readonly string[] };

const SERVICES: Readonly<Record<string, DraVersion>> = { 'v1.DRAPlugin': 'v1', 'v1beta1.DRAPlugin': 'v1beta1' };

export class Drivers {
  readonly #deps: DriversDeps;
  readonly #instances = new Map<string, DriverConnection[]>();
  readonly #closing = new Set<Promise<void>>();
  readonly #life = new AbortController();

  constructor(deps: DriversDeps) {
    this.#deps = deps;
  }

  /** Throws when there is none. */
  get(driver: string): DriverConnection {
    const instances = this.#instances.get(driver) ?? [];
    const found = instances.findLast((i) => i.connected) ?? instances.at(-1);
    if (found === undefined) throw new KubeletError('unavailable', `DRA driver ${driver} is not registered`);
    return found;
  }

  async close(): Promise<void> {
    this.#life.abort();
    for (const driver of this.#instances.keys()) for (const instance of this.#take(driver)) this.#end(instance);
    await Promise.all(this.#closing);
  }

  /** For plugins found in the plugin folder. */
  readonly handler = {
    type: 'DRAPlugin' as const,
    validate: (plugin: FoundPlugin): void => void versionOf(plugin),
    register: (plugin: FoundPlugin): Promise<void> => {
      this.#add(plugin);
      return Promise.resolve();
    },
    deregister: ({ name, endpoint }: FoundPlugin): void => this.#remove(name, endpoint),
  };

  #add(plugin: FoundPlugin): void {
    const { clock, log, durations, events } = this.#deps;
    const { name: driver, endpoint } = plugin;
    const known = this.#instances.get(driver) ?? [];
    if (known.some((i) => i.instance.endpoint === endpoint))
      throw new KubeletError('exists', `endpoint ${endpoint} already registered for DRA driver plugin ${driver}`);
    const connection = new DriverConnection(
      {
        clock,
        log,
        durations,
        events: {
          onConnection: () => this.#connectionChanged(driver),
          onHealth: (devices) => events.onHealth(driver, devices),
          onHealthLost: () => events.onHealthLost(driver),
        },
      },
      { driver, endpoint, version: versionOf(plugin) },
      this.#life.signal,
    );
    this.#instances.set(driver, [...known, connection]);
    connection.start();
    log.info('DRA driver registered', { ...connection.instance });
    // A driver that registers and never answers counts as away from the start.
    this.#connectionChanged(driver);
  }

  #remove(driver: string, endpoint: string): void {
    const known = this.#instances.get(driver) ?? [];
    const gone = known.filter((i) => i.instance.endpoint === endpoint);
    const rest = known.filter((i) => i.instance.endpoint !== endpoint);
    if (rest.length === 0) this.#instances.delete(driver);
    else this.#instances.set(driver, rest);
    for (const instance of gone) this.#end(instance);
    if (gone.length === 0) return;
    this.#deps.log.info('DRA driver deregistered', { driver, endpoint });
    this.#deps.events.onHealthLost(driver);
    this.#connectionChanged(driver);
  }

  #connectionChanged(driver: string): void {
    const { events } = this.#deps;
    const present = (this.#instances.get(driver) ?? []).some((i) => i.connected);
    if (present) events.onPresent(driver);
    else events.onAbsent(driver);
  }

  #take(driver: string): readonly DriverConnection[] {
    const instances = this.#instances.get(driver) ?? [];
    this.#instances.delete(driver);
    return instances;
  }

  #end(instance: DriverConnection): void {
    const closed = instance.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}

/** The first version the plugin names that is known here. */
function versionOf({ name, endpoint, versions }: FoundPlugin): DraVersion {
  const found = versions.find((v) => SERVICES[v] !== undefined);
  const version = found === undefined ? undefined : SERVICES[found];
  if (version !== undefined) return version;
  const quoted = (list: readonly string[]): string => `[${list.map((v) => JSON.stringify(v)).join(' ')}]`;
  const problem =
    versions.length === 0
      ? 'empty list of supported gRPC services (aka supported versions)'
      : `none of services supported by the plugin (${quoted(versions)}) are supported by the kubelet (${quoted(Object.keys(SERVICES))})`;
  throw new KubeletError(
    'invalid',
    `invalid supported gRPC versions of DRA driver plugin ${name} at endpoint ${endpoint}: ${problem}`,
  );
}
