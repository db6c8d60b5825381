// Fits the parts of this folder together: the plugins' registration, the devices they list and who has which.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Container, type Pod } from '../core/pod.ts';
import { hasRunningContainers, type PodSnapshot } from '../core/snapshot.ts';
import { labelForPlugins } from '../host/selinux.ts';
import type { MachineTopology } from '../host/topology/machine-topology.ts';
import { aborted } from '../lib/abort.ts';
import type { Counter, Histogram, Registry } from '../lib/metrics.ts';
import type { Runnable } from '../lib/supervise.ts';
import { DeviceHook } from './device-hook.ts';
import { DeviceManager } from './device-manager.ts';
import { Plugins } from './plugins.ts';
import { DeviceRegistration } from './registration.ts';

export type Devices = {
  readonly manager: DeviceManager;
  readonly hook: DeviceHook;
  /** How the devices of a container are, where the status is to say it. */
  readonly health: (pod: Pod, container: Container) => ReturnType<DeviceManager['healthOf']>;
  /** For plugins found in the plugin folder. */
  readonly pluginHandler: DeviceRegistration['handler'];
  /** For /healthz. */
  readonly check: { readonly name: string; failing(): string | undefined };
  readonly parts: readonly Runnable[];
};

export type DevicesDeps = {
  readonly machine: MachineTopology;
  /** Pods that may hold devices: all that are not over. */
  readonly alive: () => readonly Pod[];
  readonly sourcesReady: () => boolean;
  readonly observed: { get(uid: PodUid): PodSnapshot | undefined };
  readonly wake: (uid: PodUid) => void;
  readonly nodeChanged: () => void;
};

export async function createDevices(env: Environment, deps: DevicesDeps): Promise<Devices> {
  const { clock, registry } = env;
  const log = env.log.child({ component: 'devices' });
  const directory = join(env.flags.rootDir, 'device-plugins');
  const plugins = new Plugins({
    clock,
    log,
    events: {
      onConnected: (resource) => manager.connected(resource),
      onDevices: (resource, devices) => manager.listed(resource, devices),
      onStopped: (resource) => manager.stopped(resource),
    },
  });
  const { registrations, durations } = deviceMetrics(registry);
  const manager = new DeviceManager(
    {
      clock,
      log,
      plugins,
      pods: {
        alive: deps.alive,
        sourcesReady: deps.sourcesReady,
        isRunning: (uid, container) => isRunning(deps.observed.get(uid), container),
      },
      numaNodes: () => deps.machine.nodes.map((node) => node.id),
      onHealthChange: deps.wake,
      onAmounts: deps.nodeChanged,
      onGone: (resource) => {
        plugins.forget(resource);
        registrations.remove({ resource_name: resource });
      },
      durations,
    },
    { checkpoint: join(directory, 'kubelet_internal_checkpoint') },
  );
  const registration = new DeviceRegistration(
    {
      clock,
      plugins,
      log,
      label: (path) => labelForPlugins(path, log),
      registrations,
    },
    { directory },
  );
  await manager.load();
  return {
    manager,
    hook: new DeviceHook(manager),
    health: (pod, container) => manager.healthOf(uidOf(pod), container.name),
    pluginHandler: registration.handler,
    check: { name: 'device-plugin', failing: () => registration.failing() },
    parts: [registration, closing(plugins, manager)],
  };
}

const deviceMetrics = (registry: Registry): { readonly registrations: Counter; readonly durations: Histogram } => ({
  registrations: registry.counter(
    'kubelet_device_plugin_registration_total',
    '[ALPHA] Cumulative number of device plugin registrations. Broken down by resource name.',
    ['resource_name'],
  ),
  durations: registry.histogram(
    'kubelet_device_plugin_alloc_duration_seconds',
    '[ALPHA] Duration in seconds to serve a device plugin Allocation request. Broken down by resource name.',
    ['resource_name'],
  ),
});

function isRunning(seen: PodSnapshot | undefined, container?: string): boolean {
  if (container === undefined) return seen !== undefined && hasRunningContainers(seen);
  return seen?.containers.some((c) => c.name === container && c.state === 'running') ?? false;
}

const closing = (plugins: Plugins, manager: DeviceManager): Runnable => ({
  name: 'device-plugins',
  run: async (signal) => {
    await manager.loaded(signal);
    await aborted(signal);
    await Promise.allSettled([plugins.close(), manager.saved()]);
  },
});
