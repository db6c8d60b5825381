// Starting one container: image, config, create, start, post-start hook. Every way to fail has its reason and event.
import { access, mkdir, symlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerConfig, ImageSpec } from '../cri/gen/cri.ts';
import type { CriRuntime } from '../cri/services.ts';
import type { EventRecorder } from '../core/events.ts';
import { logLinkName } from '../core/log-links.ts';
import {
  containerFieldPath,
  namespaceOf,
  uidOf,
  type Container,
  type EphemeralContainer,
  type Pod,
  type PodContainer,
} from '../core/pod.ts';
import { withPodLimits } from '../core/pod-resources.ts';
import { containerBudget } from '../core/bounds.ts';
import { ContainerStartError, type WaitingReason } from '../core/reasons.ts';
import { newestOf, type ObservedContainer } from '../core/snapshot.ts';
import { OpenDir } from '../host/files/open-dir.ts';
import type { Budget } from '../lib/budget.ts';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import type { Partially } from '../lib/proto/codec.ts';
import { settleAll } from '../lib/settle.ts';
import { containerConfig, type ContainerAdditions } from './container-config.ts';
import type { EnvReader } from './env-reader.ts';
import type { RuntimeFacts } from './facts.ts';
import type { HookRunner } from './hooks.ts';
import type { HostsFiles } from './hosts-files.ts';
import { restartCountOf } from './labels.ts';
import { isNumberedLog, podLogDir, restartCountFromLogs } from './log-paths.ts';
import { restartCountFromStatus } from './restart-count.ts';
import { subPathOf, volumeMounts } from './mounts.ts';
import { withFreeContainerName } from './name-conflict.ts';
import type { ClusterView, EnsuredImage, Infra, ResourceManager, VolumeProvider } from './needs.ts';
import { PodFiles, type TerminationLog } from './pod-files.ts';
import type { ContainerStopper } from './stop-container.ts';
import type { SyncContext } from './sync-context.ts';

/** Logs of earlier starts that are looked at; nobody keeps as many. */
const MAX_LOGS = 10_000;

export type StarterDeps = {
  readonly cri: CriRuntime;
  readonly volumes: VolumeProvider;
  readonly resources: ResourceManager;
  readonly cluster: ClusterView;
  readonly env: EnvReader;
  readonly hosts: HostsFiles;
  readonly lifecycle: { readonly hooks: HookRunner; readonly stopper: ContainerStopper };
  readonly infra: Infra & { readonly events: EventRecorder };
};

/** One try to start one container. */
type Attempt = {
  readonly entry: PodContainer;
  readonly pod: Pod;
  readonly signal: AbortSignal;
  readonly containerId?: string;
};

type Made = {
  readonly config: Partially<ContainerConfig>;
  readonly restartCount: number;
  readonly terminationLog: TerminationLog | undefined;
};

export class ContainerStarter {
  readonly #deps: StarterDeps;
  readonly #facts: RuntimeFacts;
  readonly #files: PodFiles;

  constructor(deps: StarterDeps, facts: RuntimeFacts) {
    this.#deps = deps;
    this.#facts = facts;
    this.#files = new PodFiles(deps.infra.clock, facts.rootDir);
  }

  /** Returns the container's id. Fails with ContainerStartError once its event is out. */
  async start(
    entry: PodContainer,
    image: () => Promise<EnsuredImage>,
    context: SyncContext,
    signal: AbortSignal,
  ): Promise<string> {
    const { container } = entry;
    const { pod } = context;
    const at: Attempt = { entry, pod, signal };
    this.#requireImageVolumes(at, context);
    const ensured = await this.#step(at, undefined, image);
    const additions = await this.#step(
      at,
      'PreCreateHookError',
      async () => (await this.#deps.resources.hooks?.preCreate(pod, container, signal)) ?? {},
      'Internal PreCreateContainer hook failed',
    );
    const made = await this.#step(at, 'CreateContainerConfigError', () =>
      this.#config(entry, ensured, additions, context, signal),
    );
    const containerId = await this.#create(at, made, context);
    const created: Attempt = { ...at, containerId };
    this.#event(created, 'Normal', 'Created', 'Container created');
    await this.#step(created, 'RunContainerError', () => this.#deps.cri.startContainer({ containerId }, signal));
    this.#event(created, 'Normal', 'Started', 'Container started');
    this.#deps.resources.resize?.setActuated(
      uidOf(pod),
      container.name,
      withPodLimits(container.resources, pod.spec.resources),
    );
    await this.#linkLog(container, containerId, made, context);
    await this.#postStart(created, containerId, context);
    return containerId;
  }

  /** Runs one step; a failure becomes an event and a ContainerStartError with the step's reason. */
  async #step<T>(at: Attempt, reason: WaitingReason | undefined, work: () => Promise<T>, prefix = 'Error'): Promise<T> {
    try {
      return await work();
    } catch (err) {
      at.signal.throwIfAborted();
      const fault =
        err instanceof ContainerStartError
          ? err
          : new ContainerStartError(reason ?? 'ImageInspectError', messageOf(err), err);
      // A hook that names its own reason is no internal failure.
      const intro = err === fault ? 'Error' : prefix;
      // An image's event names the reason only: the long text was in the puller's own event.
      this.#event(at, 'Warning', 'Failed', `${intro}: ${reason === undefined ? fault.reason : fault.message}`);
      throw fault;
    }
  }

  /** An image volume that could not be had keeps those from starting who mount it, before anything else is tried. */
  #requireImageVolumes(at: Attempt, { imageVolumes }: SyncContext): void {
    const failed = (at.entry.container.volumeMounts ?? [])
      .map(({ name }) => imageVolumes.get(name))
      .filter((found) => found instanceof ContainerStartError);
    for (const { reason } of failed) this.#event(at, 'Warning', 'Failed', `Error: ${reason}`);
    const last = failed.at(-1);
    if (last !== undefined) throw last;
  }

  /** People know containers by name: a runtime's text that has the id is told with the name instead. */
  #event({ entry, pod, containerId }: Attempt, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { name } = entry.container;
    const text = containerId === undefined ? message : message.replaceAll(containerId, name);
    this.#deps.infra.events.pod(pod, type, reason, text, { fieldPath: containerFieldPath(entry.kind, name) });
  }

  async #create(at: Attempt, made: Made, context: SyncContext): Promise<string> {
    const { cri, resources } = this.#deps;
    const { pod, entry, signal } = at;
    const owner = { uid: pod.metadata.uid ?? '', name: entry.container.name, attempt: made.restartCount };
    const request = { podSandboxId: context.sandboxId, config: made.config, sandboxConfig: context.config };
    const { containerId } = await this.#step(at, 'CreateContainerError', async () => {
      try {
        return await withFreeContainerName(cri, owner, () => cri.createContainer(request, signal), signal);
      } catch (err) {
        // The next try has a file of its own. One that cannot be removed goes with the pod's directory.
        await made.terminationLog?.remove().catch(() => undefined);
        throw err;
      }
    });
    await this.#step(
      { ...at, containerId },
      'PreStartHookError',
      async () => resources.hooks?.preStart(pod, entry.container, containerId, signal),
      'Internal PreStartContainer hook failed',
    );
    return containerId;
  }

  async #config(
    entry: PodContainer,
    ensured: EnsuredImage,
    additions: ContainerAdditions,
    context: SyncContext,
    signal: AbortSignal,
  ): Promise<Made> {
    const { container } = entry;
    const { pod, podIps, userns, runtimeHandler } = context;
    const { volumes, cluster, env: envReader } = this.#deps;
    const mounted = volumes.mountsOf(uidOf(pod));
    const images = imagesFor(container, context);
    const { ipFamily } = this.#facts;
    const facts = { podIPs: podIps, hostIPs: cluster.nodeIps(), allocatable: cluster.allocatable(), ipFamily };
    const budget = containerBudget();
    const [restartCount, env, hosts] = await settleAll([
      this.#restartCount(container, context),
      envReader.read(pod, container, mounted, facts, budget, signal),
      this.#deps.hosts.write(pod, podIps),
    ]);
    const subPaths = await this.#subPaths(container, { env, images, budget }, context, signal);
    const mounts = volumeMounts(
      { container, volumes: mounted, subPaths, images, userns },
      {
        selinux: this.#facts.selinux,
        recursiveReadOnly: cluster.handlerFeatures(runtimeHandler).recursiveReadOnlyMounts,
      },
    );
    const targetId = targetOf(entry, context);
    const terminationLog = this.#terminationLog(container, context);
    const uid = ensured.image?.uid?.value;
    const config = containerConfig(
      {
        pod,
        container,
        restartCount,
        imageRef: ensured.imageRef,
        imageUser: { ...(uid === undefined ? {} : { uid }), username: ensured.image?.username ?? '' },
        env,
        volumes: mounted,
        volumeMounts: mounts,
        hostsFile: hosts,
        terminationLog: terminationLog?.path,
        additions,
        userns,
        ...(targetId === undefined ? {} : { targetId }),
      },
      this.#facts,
      budget,
    );
    // After everything that can refuse the container.
    await terminationLog?.create();
    const earlier = context.snapshot.containers.filter(({ name }) => name === container.name);
    if (earlier.length > 0) await this.#removeTerminationLogs(terminationLog, earlier);
    return { config, restartCount, terminationLog };
  }

  /** Makes the directory of the container's logs: one that was there may tell of instances that the runtime forgot. */
  async #restartCount(container: Container, { pod, snapshot }: SyncContext): Promise<number> {
    const dir = join(podLogDir(this.#facts.podLogsDir, pod), container.name);
    const isNew = (await mkdir(dir, { recursive: true, mode: 0o755 })) !== undefined;
    const newest = newestOf(snapshot, container.name);
    // One that never started leaves its number to the next.
    if (newest !== undefined) return restartCountOf(newest) + (newest.state === 'created' ? 0 : 1);
    const told = restartCountFromStatus(pod, container.name);
    if (isNew) return told;
    try {
      const names = await OpenDir.using(dir, (logs) => logs.names(isNumberedLog, MAX_LOGS));
      return Math.max(told, restartCountFromLogs(names));
    } catch (err) {
      if (errnoOf(err) === 'ENOENT') return told;
      throw err;
    }
  }

  /** Their messages were read when the instances ended. What cannot be removed goes with the next start, or with the pod. */
  async #removeTerminationLogs(
    own: TerminationLog | undefined,
    instances: readonly ObservedContainer[],
  ): Promise<void> {
    const mounted = new Set(instances.flatMap(({ mounts }) => mounts.map(({ hostPath }) => hostPath)));
    await own?.removeUnused(mounted).catch((err: unknown) => {
      this.#deps.infra.log.debug('termination messages of earlier starts are left', { path: own.path, err });
    });
  }

  #terminationLog(container: Container, { pod }: SyncContext): TerminationLog | undefined {
    if (!container.terminationMessagePath) return undefined;
    return this.#files.newTerminationLog(uidOf(pod), container.name);
  }

  async #subPaths(
    container: Container,
    {
      env,
      images,
      budget,
    }: {
      readonly env: ReadonlyMap<string, string>;
      readonly images: ReadonlyMap<string, unknown>;
      readonly budget: Budget;
    },
    { pod }: SyncContext,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, string>> {
    const prepared = new Map<number, string>();
    for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
      const subPath = subPathOf(mount, (name) => env.get(name), budget);
      if (subPath === undefined) continue;
      // The runtime itself looks into an image.
      const isImage = images.has(mount.name);
      prepared.set(
        index,
        isImage ? subPath : await this.#deps.volumes.prepareSubPath(pod, container, index, subPath, signal),
      );
    }
    return prepared;
  }

  /** Log shippers find the log by this link; without a log there is nothing to link to. */
  async #linkLog(container: Container, containerId: string, made: Made, { pod }: SyncContext): Promise<void> {
    const target = join(podLogDir(this.#facts.podLogsDir, pod), made.config.logPath ?? '');
    const link = join(
      this.#facts.containerLogsDir,
      logLinkName(pod.metadata.name, namespaceOf(pod), container.name, containerId),
    );
    try {
      await access(target);
      await symlink(target, link).catch(async (err: unknown) => {
        if (errnoOf(err) === 'ENOENT') await mkdir(this.#facts.containerLogsDir, { recursive: true, mode: 0o755 });
        else if (errnoOf(err) === 'EEXIST') await unlink(link);
        else throw err;
        await symlink(target, link);
      });
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT')
        this.#deps.infra.log.warn('no log link made', { container: container.name, link, err });
    }
  }

  async #postStart(at: Attempt, containerId: string, { podIps, onWaiting }: SyncContext): Promise<void> {
    const { pod, signal } = at;
    const { container, kind } = at.entry;
    const handler = container.lifecycle?.postStart;
    if (handler === undefined) return;
    const { hooks, stopper } = this.#deps.lifecycle;
    onWaiting?.();
    try {
      await hooks.run(handler, { pod, container, containerId, podIps }, signal);
    } catch (err) {
      signal.throwIfAborted();
      this.#event(at, 'Warning', 'FailedPostStartHook', 'PostStartHook failed');
      const request = { pod, container, kind, containerId, podIps, message: 'FailedPostStartHook' };
      await stopper.stop(request, signal).catch((stopErr: unknown) => {
        this.#deps.infra.log.error('container with failed hook not stopped', {
          container: container.name,
          err: stopErr,
        });
      });
      throw new ContainerStartError('PostStartHookError', messageOf(err), err);
    }
  }
}

/** The images of the volumes this container mounts. */
function imagesFor(container: Container, { imageVolumes }: SyncContext): ReadonlyMap<string, Partially<ImageSpec>> {
  const images = new Map<string, Partially<ImageSpec>>();
  for (const { name } of container.volumeMounts ?? []) {
    const found = imageVolumes.get(name);
    if (found !== undefined && !(found instanceof ContainerStartError)) images.set(name, found);
  }
  return images;
}

/** Whose processes a debug container wants to see. */
function targetOf({ kind, container }: PodContainer, { snapshot }: SyncContext): string | undefined {
  const name = kind === 'ephemeral' ? (container as EphemeralContainer).targetContainerName : undefined;
  if (!name) return undefined;
  const target = newestOf(snapshot, name);
  if (target === undefined) throw new KubeletError('notFound', `unable to find target container ${name}`);
  return target.id;
}
