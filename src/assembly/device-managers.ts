// Everything that gives devices to containers: device plugins and DRA drivers, as one group.
import type { AllocatedResourceStatus, Container, Pod } from '../core/pod.ts';
import type { PluginHandler } from '../plugins/plugin-handler.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { ContainerManagerHook } from '../resources/container-manager-hook.ts';
import type { Assigned } from '../server/pod-resources.ts';
import { buildDevices, type Devices, type DevicesDeps } from './devices.ts';
import { buildDra, type Dra, type DraDeps } from './dra.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export type DeviceHealth = (pod: Pod, container: Container) => readonly AllocatedResourceStatus[] | undefined;

export type DeviceManagers = {
  readonly devices: Devices['manager'];
  readonly claims: Dra['manager'];
  /** In the order in which they add to a container. */
  readonly hooks: readonly ContainerManagerHook[];
  readonly assigned: Pick<Assigned, 'devices' | 'claims'>;
  /** Empty where statuses do not tell. */
  readonly health: readonly DeviceHealth[];
  readonly pluginHandlers: readonly PluginHandler[];
  readonly parts: readonly Runnable[];
};

export async function buildDeviceManagers(
  base: Foundation,
  edge: RuntimeEdge,
  deps: DevicesDeps & DraDeps,
): Promise<DeviceManagers> {
  const devices = await buildDevices(base, edge, deps);
  const dra = await buildDra(base, deps);
  const health: readonly DeviceHealth[] = [devices.health, (pod, container) => dra.manager.healthOf(pod, container)];
  return {
    devices: devices.manager,
    claims: dra.manager,
    hooks: [dra.hook, devices.hook],
    assigned: { devices: devices.manager, claims: dra.manager },
    health: base.gates.enabled('ResourceHealthStatus') ? health : [],
    pluginHandlers: [devices.pluginHandler, dra.pluginHandler],
    parts: [...devices.parts, ...dra.parts],
  };
}
