// Pods in the runtime: brings one to what its spec asks for, or to an end. The caller serialises calls per pod.
import type { CriRuntime } from '../cri/services.ts';
import type { EventRecorder } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import { withPodLimits, type Actuated } from '../core/pod-resources.ts';
import { newestOf, type PodSnapshot } from '../core/snapshot.ts';
import { CrashBackoff } from './crash-backoff.ts';
import { EnvReader } from './env-reader.ts';
import type { RuntimeFacts } from './facts.ts';
import { HookRunner } from './hooks.ts';
import { HostsFiles } from './hosts-files.ts';
import type { ClusterView, ContainerRemover, ImageEnsurer, Infra, ResourceManager, VolumeProvider } from './needs.ts';
import { planPod } from './plan.ts';
import type { ProbeResults } from './plan-steps.ts';
import { PodFiles } from './pod-files.ts';
import { PodSync, type PodSyncParts, type SyncRequest } from './pod-sync.ts';
import { resizableContainers } from './resize-plan.ts';
import { Resizer } from './resize.ts';
import { Sandboxes } from './sandbox.ts';
import { ContainerStarter } from './start-container.ts';
import { ContainerStopper } from './stop-container.ts';
import { PodStopper, type StopPodRequest } from './stop-pod.ts';
import { aggregate, type PodSyncResult } from './sync-result.ts';
import type { UserNamespaces } from './user-namespaces.ts';

export type PodRuntimeDeps = {
  readonly cri: CriRuntime;
  readonly images: ImageEnsurer;
  readonly volumes: VolumeProvider;
  readonly resources: ResourceManager;
  readonly remover: ContainerRemover;
  readonly cluster: ClusterView;
  readonly events: EventRecorder;
  readonly infra: Infra & { readonly userns: UserNamespaces };
};

export type PodSyncRequest = SyncRequest & {
  readonly probes: ProbeResults;
  readonly restartingAll?: boolean;
};

/** Of a pod that is as it should be, which most are most of the time. */
const NOTHING_TO_DO: PodSyncResult = { startErrors: new Map(), acted: false };

export class PodRuntime {
  readonly #deps: PodRuntimeDeps;
  readonly #parts: PodSyncParts;
  readonly #hosts: HostsFiles;

  constructor(deps: PodRuntimeDeps, facts: RuntimeFacts) {
    const { cri, volumes, resources, cluster, events } = deps;
    const infra = { ...deps.infra, log: deps.infra.log.child({ component: 'runtime' }) };
    const hooks = new HookRunner({ cri, events, infra, nodeIps: () => cluster.nodeIps() }, facts);
    const stopper = new ContainerStopper({ cri, hooks, events, infra });
    const files = new PodFiles(infra.clock, facts.rootDir);
    this.#hosts = new HostsFiles({ files, log: infra.log }, facts);
    this.#deps = deps;
    this.#parts = {
      ...deps,
      infra,
      executors: {
        sandboxes: new Sandboxes({ cri, volumes, resources, cluster, userns: deps.infra.userns, events, infra }, facts),
        starter: new ContainerStarter(
          {
            cri,
            volumes,
            resources,
            cluster,
            env: new EnvReader(cluster),
            hosts: this.#hosts,
            lifecycle: { hooks, stopper },
            infra: { ...infra, events },
          },
          facts,
        ),
        stopper,
        podStopper: new PodStopper({ cri, stopper }),
        remover: deps.remover,
        resizer: new Resizer({ cri, resources }, facts),
        backoff: new CrashBackoff(facts.crashBackoff),
      },
    };
  }

  /** One step of the pod towards its spec. Failures are in the result; it rejects only when aborted. */
  async syncPod(request: PodSyncRequest, signal: AbortSignal): Promise<PodSyncResult> {
    const { pod, snapshot, probes, restartingAll = false } = request;
    await this.#hosts.repairOnce(pod, snapshot);
    const actuated = this.#actuatedOf(pod, snapshot);
    const plan = planPod({ pod, snapshot, probes, restartingAll, ...(actuated === undefined ? {} : { actuated }) });
    signal.throwIfAborted();
    if (plan.steps.length === 0) return NOTHING_TO_DO;
    const result = await new PodSync(this.#parts, request, plan).run(signal);
    signal.throwIfAborted();
    return result;
  }

  /** What runs without a record is taken to run with what it was given, so that later changes are seen. */
  #actuatedOf(pod: Pod, snapshot: PodSnapshot): Actuated | undefined {
    const records = this.#deps.resources.resize;
    if (records === undefined) return undefined;
    const uid = uidOf(pod);
    const { containers, pod: podLevel } = records.actuatedOf(uid);
    if (containers.size === 0 && podLevel === undefined && pod.spec.resources !== undefined)
      records.setActuatedPod(uid, pod.spec.resources);
    for (const { name, resources } of resizableContainers(pod))
      if (newestOf(snapshot, name)?.state === 'running' && !containers.has(name))
        records.setActuated(uid, name, withPodLimits(resources, pod.spec.resources));
    return records.actuatedOf(uid);
  }

  /** Stops all containers and sandboxes of a pod. Rejects with what failed, in upstream's words. */
  async killPod(request: StopPodRequest, signal: AbortSignal): Promise<void> {
    const error = aggregate(await this.#parts.executors.podStopper.stop(request, signal));
    signal.throwIfAborted();
    if (error !== undefined) throw error;
  }

  /** Somebody wants a container that keeps ending started at once. */
  resetBackoff(pod: Pod): void {
    this.#parts.executors.backoff.forgetPod(pod);
  }

  /** Drops what is remembered of a pod that is gone for good. */
  async forget(uid: PodUid, pod: Pod | undefined): Promise<void> {
    if (pod !== undefined) this.#parts.executors.backoff.forgetPod(pod);
    this.#hosts.forget(uid);
    this.#parts.executors.backoff.prune(this.#deps.infra.clock.now());
    await this.#deps.infra.userns.release(uid);
  }
}
