// Admission of pods to this node.
import { appArmorHostProblem } from '../admission/app-armor.ts';
import { PodAdmission } from '../admission/pod-admission.ts';
import { SysctlAllowlist } from '../admission/sysctls.ts';
import type { Pod } from '../core/pod.ts';
import { evictPod } from '../pods/evict.ts';
import type { PodWorkers } from '../pods/pod-workers.ts';
import type { ContainerManagerHooks } from '../resources/container-manager-hook.ts';
import { unsupportedVolumeOf } from '../volumes/plugin-set.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import { declaredFeatures } from '../node/declared-features.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export async function buildAdmission(
  base: Foundation,
  edge: RuntimeEdge,
  deps: {
    readonly cluster: ClusterPort;
    readonly hooks: ContainerManagerHooks;
    readonly workers: () => PodWorkers;
    readonly pressures: () => readonly string[];
    readonly shuttingDown: () => boolean;
    readonly allocatedDevices: (pod: Pod) => ReadonlyMap<string, number>;
  },
): Promise<PodAdmission> {
  const { config, gates, log } = base;
  const { cluster, hooks } = deps;
  return new PodAdmission(
    {
      node: { node: () => cluster.node(), fresh: (signal) => cluster.freshNode(signal) },
      hooks,
      sysctls: new SysctlAllowlist(config.allowedUnsafeSysctls, edge.resources.machine.kernelRelease),
      nodeConditions: deps.pressures,
      shuttingDown: deps.shuttingDown,
      unsupportedVolume: (pod) =>
        unsupportedVolumeOf(pod, {
          podCertificates: cluster.podCertificates !== undefined,
          claims: cluster.api !== undefined,
        }),
      evict: (pod, why, signal) =>
        evictPod({ workers: deps.workers(), events: cluster.events, clock: base.clock }, pod, why, signal),
      clock: base.clock,
      allocatedDevices: deps.allocatedDevices,
      log: log.child({ component: 'admission' }),
      rejections: base.registry.counter(
        'kubelet_admission_rejections_total',
        'Cumulative number pod admission rejections by the Kubelet.',
        ['reason'],
      ),
      preemptions: base.registry.counter(
        'kubelet_preemptions',
        'Cumulative number of pod preemptions by preemption resource',
        ['preemption_signal'],
      ),
    },
    {
      podLevelResources: gates.enabled('PodLevelResources'),
      declaredFeatures: declaredFeatures(base.gates),
      appArmorProblem: await appArmorHostProblem(),
    },
  );
}
