// The CSI drivers that registered on this node, with a client for each. A driver is usable from the moment the cluster was
// told of it until its socket goes.
import { aborted } from '../../lib/abort.ts';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Runnable } from '../../lib/supervise.ts';
import type { PluginHandler, PluginInfo } from '../../plugins/plugin-handler.ts';
import { CsiClient, type CsiClientDeps } from './csi-client.ts';
import type { CsiNodeInfo } from './node-info.ts';
import type { DriverOnNode } from './node-objects.ts';
import { highestVersion, isHigher } from './versions.ts';

export type CsiDriversDeps = CsiClientDeps & {
  readonly nodeInfo: Pick<CsiNodeInfo, 'install' | 'uninstall' | 'update'>;
  readonly log: Logger;
  /** A driver came or went. */
  readonly onChange?: (driver: string) => void;
};

type Registered = { readonly plugin: PluginInfo; readonly version: string; readonly client: CsiClient };

export class CsiDrivers implements PluginHandler, Runnable {
  readonly type = 'CSIPlugin';
  readonly name = 'csi-drivers';
  readonly #deps: CsiDriversDeps;
  readonly #drivers = new Map<string, Registered>();
  readonly #background = new Set<Promise<void>>();
  #signal: AbortSignal | undefined;

  constructor(deps: CsiDriversDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    await aborted(signal);
    await Promise.all(this.#background);
    for (const { client } of this.#drivers.values()) client.close();
  }

  validate({ name, endpoint, versions }: PluginInfo): void {
    const highest = highestVersion(versions);
    const problem = 'problem' in highest ? highest.problem : this.#takenProblem(name, highest.version);
    if (problem === undefined) return;
    throw new KubeletError(
      'invalid',
      `validation failed for CSI Driver ${name} at endpoint ${endpoint}: kubernetes.io/csi: ValidatePlugin for CSI driver "${name}" failed. ${problem}`,
    );
  }

  async register(plugin: PluginInfo, signal: AbortSignal): Promise<void> {
    const highest = highestVersion(plugin.versions);
    const version = 'version' in highest ? highest.version : '';
    const client = new CsiClient(this.#deps, { driver: plugin.name, endpoint: plugin.endpoint });
    const registered = { plugin, version, client };
    this.#drivers.get(plugin.name)?.client.close();
    this.#drivers.set(plugin.name, registered);
    try {
      await this.#deps.nodeInfo.install(plugin.name, await onNode(client, signal), signal);
    } catch (err) {
      this.#forget(registered);
      throw err;
    }
    this.#deps.onChange?.(plugin.name);
  }

  deregister(plugin: PluginInfo): void {
    const registered = this.#drivers.get(plugin.name);
    // Another registration of the same driver took its place already.
    if (registered?.plugin === plugin) this.#forget(registered);
  }

  names(): string[] {
    return [...this.#drivers.keys()].sort();
  }

  /** Asks the driver again how many volumes it can take and tells the cluster. */
  async refreshLimits(driver: string, signal: AbortSignal): Promise<void> {
    await this.#deps.nodeInfo.update(driver, await onNode(this.client(driver), signal), signal);
  }

  /** `unavailable` with upstream's text for a driver that is not there. */
  client(driver: string): CsiClient {
    const registered = this.#drivers.get(driver);
    if (registered !== undefined) return registered.client;
    const message = `driver name ${driver} not found in the list of registered CSI drivers`;
    throw new KubeletError('unavailable', message, { detail: { driverAway: true } });
  }

  #takenProblem(name: string, version: string): string | undefined {
    const existing = this.#drivers.get(name)?.version;
    if (existing === undefined || isHigher(version, existing)) return undefined;
    return `Another driver with the same name is already registered with a higher supported version: "${existing}"`;
  }

  #forget(registered: Registered): void {
    const driver = registered.plugin.name;
    if (this.#drivers.get(driver) !== registered) return;
    this.#drivers.delete(driver);
    registered.client.close();
    this.#deps.onChange?.(driver);
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    const telling = this.#deps.nodeInfo
      .uninstall(driver, () => this.#drivers.has(driver), signal)
      .catch((err: unknown) => {
        if (!signal.aborted)
          this.#deps.log.error('the cluster was not told that a CSI driver is gone', { driver, err: messageOf(err) });
      })
      .finally(() => this.#background.delete(telling));
    this.#background.add(telling);
  }
}

async function onNode(client: CsiClient, signal: AbortSignal): Promise<DriverOnNode> {
  const { nodeId, maxVolumesPerNode, accessibleTopology } = await client.info(signal);
  return { nodeId, maxVolumesPerNode, topology: accessibleTopology?.segments ?? {} };
}
