// The pod runtime: what a pod becomes in the container runtime, fitted with everything around it.
import { uidOf } from '../core/pod.ts';
import type { Images } from '../images/create.ts';
import type { PodMetrics } from '../pods/pod-metrics.ts';
import { createRuntime, type RuntimeParts } from '../runtime/create.ts';
import type { ResizeRecords } from '../runtime/needs.ts';
import { tracedImages } from '../trace/traced-ports.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { Managers } from './managers.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Volumes } from './volumes.ts';

export type PodRuntimeNeeds = {
  readonly cluster: ClusterPort;
  readonly volumes: Volumes;
  readonly images: Images;
  readonly managers: Managers;
  readonly resize: ResizeRecords;
  readonly podMetrics: PodMetrics;
};

export function buildPodRuntime(
  base: Foundation,
  edge: RuntimeEdge,
  deps: PodRuntimeNeeds,
  signal: AbortSignal,
): Promise<RuntimeParts> {
  const { cluster, volumes, podMetrics, resize } = deps;
  const { cgroups, claims, hooks, remover } = deps.managers;
  const images = tracedImages(base.tracer, deps.images.puller);
  return createRuntime(
    base,
    {
      cri: edge.cri.runtime,
      images: {
        ensure: (request, stop) => podMetrics.pulling(uidOf(request.pod), () => images.ensure(request, stop)),
      },
      volumes: volumes.manager,
      podDirs: volumes.podDirs,
      resources: {
        cgroupParentOf: (pod) => cgroups.parentOf(pod),
        prepare: (pod, stop) => claims.prepare(pod, stop),
        hooks,
        resize,
      },
      remover,
      cluster,
      objects: cluster.objects,
      node: edge.resources,
      health: edge.health,
      events: cluster.events,
    },
    {
      ...edge.resources.machine,
      cgroupVersion: edge.cgroups.version,
      limitsSwap: edge.limitsSwap,
      podMemoryBytes: () => edge.resources.podMemoryBytes(),
    },
    signal,
  );
}
