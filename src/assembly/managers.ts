// Everything that gives a container something of the machine: device plugins, DRA drivers, the managers that pin, cgroups.
import type { AllocatedResourceStatus, Container, Pod } from '../core/pod.ts';
import { createDevices, type Devices, type DevicesDeps } from '../devices/create.ts';
import { createDra, type Dra } from '../dra/create.ts';
import type { ContainerRemover } from '../garbage/container-remover.ts';
import { createRemover } from '../garbage/create.ts';
import { readMachineTopology } from '../host/topology/read.ts';
import type { Runnable } from '../lib/supervise.ts';
import { removeContainerLogs } from '../logs/rotation.ts';
import type { PluginHandler } from '../plugins/plugin-handler.ts';
import { ContainerManagerHooks } from '../resources/container-manager-hook.ts';
import { createPodCgroups } from '../resources/create.ts';
import { createContainerManagers } from '../resources/create-managers.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import type { Assigned } from '../server/pod-resources.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export type DeviceHealth = (pod: Pod, container: Container) => readonly AllocatedResourceStatus[] | undefined;

export type Managers = {
  readonly devices: Devices['manager'];
  readonly claims: Dra['manager'];
  readonly hooks: ContainerManagerHooks;
  readonly cgroups: PodCgroups;
  /** Tells the managers of every container that goes. */
  readonly remover: ContainerRemover;
  readonly assigned: Assigned;
  /** How the devices of a container are; empty where statuses do not tell. */
  readonly deviceHealth: readonly DeviceHealth[];
  readonly pluginHandlers: readonly PluginHandler[];
  readonly parts: readonly Runnable[];
};

export async function buildManagers(
  base: Foundation,
  edge: RuntimeEdge,
  deps: Omit<DevicesDeps, 'machine' | 'observed'> & { readonly cluster: ClusterPort },
): Promise<Managers> {
  const { cluster, alive, sourcesReady } = deps;
  const { runtime } = edge.cri;
  const observed = edge.observer.cache;
  const machine = await readMachineTopology();
  const devices = await createDevices(base, { ...deps, machine, observed });
  const dra = await createDra(base, { ...deps, observed, client: cluster.api?.main });
  const pinning = await createContainerManagers(base, {
    machine,
    resources: edge.resources,
    observed,
    runtime,
    providers: [devices.manager],
    holders: alive,
    sourcesReady,
  });
  edge.resources.addDevices(() => devices.manager.amounts());
  base.health.push(devices.check);
  const hooks = new ContainerManagerHooks([dra.hook, devices.hook, pinning.hook]);
  const deviceHealth: readonly DeviceHealth[] = [
    devices.health,
    (pod, container) => dra.manager.healthOf(pod, container),
  ];
  return {
    devices: devices.manager,
    claims: dra.manager,
    hooks,
    cgroups: createPodCgroups(base, edge, hooks),
    remover: createRemover({
      runtime,
      observed,
      removeLogs: removeContainerLogs,
      postStop: (uid, container, id) => hooks.postStop(uid, container, id),
    }),
    assigned: { devices: devices.manager, claims: dra.manager, cpus: pinning.cpu, memory: pinning.memory },
    deviceHealth: base.gates.enabled('ResourceHealthStatus') ? deviceHealth : [],
    pluginHandlers: [devices.pluginHandler, dra.pluginHandler],
    parts: [...pinning.parts, ...devices.parts, ...dra.parts],
  };
}
