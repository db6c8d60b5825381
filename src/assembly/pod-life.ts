// The life of pods, fitted with everything a pod needs around it.
import type { PodAdmission } from '../admission/pod-admission.ts';
import type { PodLeftovers } from '../garbage/pod-leftovers.ts';
import type { Images } from '../images/create.ts';
import { pullSecretsOf, type PullSecretsDeps } from '../images/pull-secrets.ts';
import { observedSandbox } from '../observe/snapshot-of.ts';
import { createPodLife, type PodLife } from '../pods/create.ts';
import type { PodMetrics } from '../pods/pod-metrics.ts';
import type { PodStatusWriterDeps } from '../pods/pod-status-writer.ts';
import type { PodStore } from '../pods/pod-store.ts';
import type { ProbeManager } from '../probes/probe-manager.ts';
import type { KeptPods } from '../sources/kept-pods.ts';
import { PodCgroupLife } from '../resources/pod-cgroup-life.ts';
import type { Resizing } from '../resources/create-resizing.ts';
import type { PodRuntime } from '../runtime/pod-runtime.ts';
import { uidOf } from '../core/pod.ts';
import { podIpFamily } from '../core/pod-ips.ts';
import { derivePodStatus } from '../status/derive.ts';
import type { StatusStore } from '../status/status-store.ts';
import type { TerminationMessages } from '../status/termination-messages.ts';
import { podTracing } from '../trace/traced-ports.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Managers } from './managers.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Volumes } from './volumes.ts';

export type PodLifeDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly volumes: Volumes;
  readonly runtime: PodRuntime;
  readonly probes: ProbeManager;
  readonly statuses: StatusStore;
  readonly messages: TerminationMessages;
  readonly store: PodStore;
  readonly admission: PodAdmission;
  readonly sourcesReady: () => boolean;
  readonly images: Images;
  /** The tiers' weights follow their pods. */
  readonly tiers: () => { refresh(signal: AbortSignal): Promise<void> };
  readonly leftovers: PodLeftovers;
  readonly kept: () => KeptPods;
  readonly resizing: Resizing;
  readonly managers: Managers;
  readonly podMetrics: PodMetrics;
};

export function buildPodLife(deps: PodLifeDeps): PodLife {
  const { base, edge, cluster, volumes, images, resizing, managers } = deps;
  const secret: PullSecretsDeps['secret'] = (namespace, name, signal) =>
    cluster.objects.secret(namespace, name, signal);
  return createPodLife(base, {
    ...deps,
    derive: derivation(deps),
    observed: edge.observer.cache,
    observedSandbox,
    images: {
      pullSecrets: (pod, signal) => pullSecretsOf({ secret, events: cluster.events }, pod, signal),
      forgetPod: (uid) => images.puller.forgetPod(uid),
    },
    resizing: resizing.pods,
    cgroups: new PodCgroupLife({
      cgroups: managers.cgroups,
      tiers: deps.tiers,
      onMade: (pod) => resizing.pods.cgroupMade(pod),
    }),
    volumes: volumes.manager,
    objects: cluster.objects,
    directories: volumes.podDirs,
    claims: managers.claims,
    network: edge.health,
    tracing: podTracing(base.tracer),
    metrics: deps.podMetrics,
  });
}

/** A status is made of what the runtime, probes, resizes and devices say. */
const derivation =
  ({ base, edge, cluster, probes, resizing, managers }: PodLifeDeps): PodStatusWriterDeps['derive'] =>
  (facts) =>
    resizing.pods.withConditions(
      derivePodStatus({
        ...facts,
        runtimeName: edge.version.name,
        actuated: resizing.pods.actuatedOf(uidOf(facts.pod)),
        readiness: probes.readinessOf(facts.pod),
        hostIPs: cluster.nodeIps(),
        ipFamily: podIpFamily(base.flags.nodeIp),
        imageDigests: base.gates.enabled('ImageVolumeWithDigest'),
        stopSignals: base.gates.enabled('ContainerStopSignals'),
        tellsSandbox: base.gates.enabled('PodReadyToStartContainersCondition'),
        tellsPodResources: base.gates.enabled('InPlacePodLevelResourcesVerticalScaling'),
        recursiveReadOnly: (handler) => edge.health.handlerFeatures(handler).recursiveReadOnlyMounts,
        deviceHealth: managers.deviceHealth.map((ask) => (container) => ask(facts.pod, container)),
      }),
      facts.pod,
      facts.terminal,
    );
