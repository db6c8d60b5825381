// Admission of pods to this node.
import { appArmorHostProblem } from '../admission/app-armor.ts';
import { PodAdmission } from '../admission/pod-admission.ts';
import { SysctlAllowlist } from '../admission/sysctls.ts';
import type { Verdict } from '../pods/pod-changes.ts';
import type { Pod } from '../core/pod.ts';
import type { ContainerManagerHooks } from '../resources/container-manager-hook.ts';
import { unsupportedVolumeOf } from '../volumes/plugin-set.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import { declaredFeatures } from './node-reporting.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export async function buildAdmission(
  base: Foundation,
  edge: RuntimeEdge,
  around: { readonly cluster: ClusterPort; readonly hooks: ContainerManagerHooks },
): Promise<(pod: Pod, active: readonly Pod[], signal: AbortSignal) => Promise<Verdict>> {
  const { config, gates, log } = base;
  const { cluster, hooks } = around;
  const admission = new PodAdmission(
    {
      node: { node: () => cluster.node(), fresh: (signal) => cluster.freshNode(signal) },
      hooks,
      sysctls: new SysctlAllowlist(config.allowedUnsafeSysctls, edge.resources.machine.kernelRelease),
      nodeConditions: () => [],
      shuttingDown: () => false,
      log: log.child({ component: 'admission' }),
    },
    {
      podLevelResources: gates.enabled('PodLevelResources'),
      declaredFeatures: declaredFeatures(base),
      appArmorProblem: await appArmorHostProblem(),
    },
  );
  return async (pod, active, signal) => {
    const unsupported = unsupportedVolumeOf(pod);
    if (unsupported !== undefined) return { ok: false, reason: 'UnsupportedVolume', message: unsupported };
    return admission.admit(pod, active, signal);
  };
}
