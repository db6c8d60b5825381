// Admission of pods to this node.
import { createAdmission, type AdmissionDeps } from '../admission/create.ts';
import type { PodAdmission } from '../admission/pod-admission.ts';
import { uidOf } from '../core/pod.ts';
import { isAlive } from '../core/snapshot.ts';
import { declaredFeatures } from '../node/declared-features.ts';
import type { PodLifecycles } from '../pods/pod-lifecycles.ts';
import { unsupportedVolumeOf } from '../volumes/plugin-set.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';

export const buildAdmission = (
  base: Foundation,
  edge: RuntimeEdge,
  deps: Pick<AdmissionDeps, 'hooks' | 'pressures' | 'shuttingDown' | 'allocatedDevices'> & {
    readonly cluster: ClusterPort;
    readonly lifecycles: () => PodLifecycles;
  },
): Promise<PodAdmission> => {
  const { cluster, lifecycles, ...rest } = deps;
  const volumes = { podCertificates: cluster.objects.podCertificates !== undefined, claims: cluster.api !== undefined };
  return createAdmission(
    base,
    {
      ...rest,
      node: { node: () => cluster.node(), fresh: (signal) => cluster.freshNode(signal) },
      isRunning: (pod) => isAlive(edge.observer.cache.get(uidOf(pod))),
      unsupportedVolume: (pod) => unsupportedVolumeOf(pod, volumes),
      evict: (pod, why, signal) => lifecycles().evict(pod, why, signal),
    },
    {
      declaredFeatures: () => declaredFeatures(base.gates, edge.health.state().features),
      kernelRelease: edge.resources.machine.kernelRelease,
    },
  );
};
