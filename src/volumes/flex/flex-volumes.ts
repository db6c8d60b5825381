// FlexVolumes as the rest of the volumes know them: the plugin of a source or of a directory on disk.
import { ChildCommands, type HostCommands } from '../../host/mounts/commands.ts';
import type { Clock } from '../../lib/clock.ts';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import { KeyedLock } from '../../lib/keyed-lock.ts';
import type { VolumePlugin } from '../plugin.ts';
import { driverOf } from './driver-options.ts';
import { FlexDrivers } from './flex-drivers.ts';
import { FlexPlugin, type FlexPluginDeps } from './flex-plugin.ts';

export type FlexVolumesDeps = Omit<FlexPluginDeps, 'drivers' | 'turns' | 'devices'> & {
  readonly clock: Clock;
  /** A stand-in for tests. */
  readonly commands?: HostCommands;
};

export type FlexVolumesOpts = {
  /** `volumePluginDir` */
  readonly dir: string;
  /** How long a driver may take for one call, and to say what it can do. */
  readonly callTimeoutMs?: number;
  readonly initTimeoutMs?: number;
};

export class FlexVolumes {
  readonly #deps: FlexPluginDeps & { readonly drivers: Pick<FlexDrivers, 'isThere'> };

  constructor(deps: FlexVolumesDeps, opts: FlexVolumesOpts) {
    const { clock, commands, ...rest } = deps;
    const limited = (timeoutMs: number): HostCommands => commands ?? new ChildCommands({ clock }, { timeoutMs });
    const drivers = new FlexDrivers(
      { quick: limited(opts.initTimeoutMs ?? 30_000), commands: limited(opts.callTimeoutMs ?? 600_000) },
      { dir: opts.dir },
    );
    this.#deps = { ...rest, drivers, turns: new KeyedLock(), devices: new Map() };
  }

  /** Of a pod's or a persistent volume's source; it is `ready` once the driver has said what it can do. */
  of(source: unknown, specName: string): VolumePlugin {
    const name = driverOf(source);
    const plugin: VolumePlugin = new FlexPlugin(name, this.#deps);
    plugin.ready = async (signal) => {
      try {
        await this.#deps.drivers.capabilities(name, signal);
      } catch (err) {
        signal.throwIfAborted();
        const message = `failed to get Plugin from volumeSpec for volume "${specName}" err=${messageOf(err)}`;
        throw new KubeletError('unavailable', message, { cause: err });
      }
    };
    return plugin;
  }

  /** Of a directory in a pod's `volumes/`, whether or not its driver is there: Kubernetes' own names may be other kinds. */
  async byName(name: string): Promise<VolumePlugin | undefined> {
    const isOurs = !name.startsWith('kubernetes.io/') || (await this.#deps.drivers.isThere(name));
    return isOurs ? new FlexPlugin(name, this.#deps) : undefined;
  }
}
