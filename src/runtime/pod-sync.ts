// One sync of one pod: the plan's steps, done in order. Lives for one call.
import { ContainerState, PodSandboxState } from '../cri/gen/cri.ts';
import type { CriRuntime } from '../cri/services.ts';
import { goQuote } from '../core/downward.ts';
import type { EventRecorder } from '../core/events.ts';
import type { Secret } from '../core/node.ts';
import {
  containerFieldPath,
  findContainer,
  podRef,
  type ContainerKind,
  type Pod,
  type PodContainer,
} from '../core/pod.ts';
import { formatDurationMs } from '../core/duration.ts';
import { ContainerStartError, type WaitingReason } from '../core/reasons.ts';
import { hasRunningContainers, type PodSnapshot } from '../core/snapshot.ts';
import { nanosToMs } from '../core/time.ts';
import { isFault } from '../lib/errors.ts';
import { fullErrorText } from '../lib/grpc/status.ts';
import { backoffKey, type CrashBackoff } from './crash-backoff.ts';
import type { ClusterView, ContainerRemover, ContainerType, ImageEnsurer, Infra, ResourceManager } from './needs.ts';
import type { PodPlan, PodStep } from './plan-steps.ts';
import { PodImages } from './pod-images.ts';
import type { Resizer } from './resize.ts';
import type { Sandboxes, SandboxSetting } from './sandbox.ts';
import type { ContainerStarter } from './start-container.ts';
import type { ContainerStopper } from './stop-container.ts';
import type { PodStopper } from './stop-pod.ts';
import type { SyncContext } from './sync-context.ts';
import { SyncLedger, type PodSyncResult } from './sync-result.ts';

export type SyncRequest = {
  readonly pod: Pod;
  readonly snapshot: PodSnapshot;
  readonly pullSecrets: readonly Secret[];
  /** Called as soon as a new sandbox is up. */
  readonly onSandboxReady?: (sandboxId: string, ips: readonly string[]) => void;
  /** Called when somebody else is waited for: a hook, a registry, a container that is to end, a driver. */
  readonly onWaiting?: () => void;
  /** Whether the pod was asked to stop meanwhile: then a failing sandbox is nobody's news. */
  readonly isTerminating?: () => boolean;
};

export type PodSyncParts = {
  readonly cri: CriRuntime;
  readonly images: ImageEnsurer;
  readonly cluster: ClusterView;
  readonly resources: ResourceManager;
  readonly events: EventRecorder;
  readonly infra: Infra;
  readonly executors: {
    readonly sandboxes: Sandboxes;
    readonly starter: ContainerStarter;
    readonly stopper: ContainerStopper;
    readonly podStopper: PodStopper;
    readonly remover: ContainerRemover;
    readonly resizer: Resizer;
    readonly backoff: CrashBackoff;
  };
};

/** Whether the sync goes on with the next step. */
type Outcome = 'next' | 'stop';
type Executors = {
  readonly [K in PodStep['do']]: (step: Extract<PodStep, { do: K }>, signal: AbortSignal) => Promise<Outcome>;
};

const TYPE: Record<ContainerKind, ContainerType> = {
  main: 'container',
  init: 'init_container',
  ephemeral: 'ephemeral_container',
};

const LEFTOVER_RETRY_MS = 500;

/** How a runtime begins its complaint about an image volume it could not mount. */
const IMAGE_VOLUME_FAILED = 'ImageVolumeMountFailed';

const AFTER_CREATE: readonly WaitingReason[] = [
  'CreateContainerError',
  'PreStartHookError',
  'RunContainerError',
  'PostStartHookError',
];

export class PodSync {
  readonly #parts: PodSyncParts;
  readonly #request: SyncRequest;
  readonly #plan: PodPlan;
  readonly #ledger = new SyncLedger();
  readonly #images: PodImages;
  #context: SyncContext | undefined;

  constructor(parts: PodSyncParts, request: SyncRequest, plan: PodPlan) {
    this.#parts = parts;
    this.#request = request;
    this.#plan = plan;
    this.#images = new PodImages(parts.images, request);
  }

  async run(signal: AbortSignal): Promise<PodSyncResult> {
    const executors: Executors = {
      killPod: () => this.#killPod(signal),
      killContainer: (step) => this.#killContainer(step, signal),
      removeContainer: (step) => this.#removeContainer(step, signal),
      createSandbox: (step) => this.#createSandbox(step, signal),
      resize: (step) => this.#resize(step, signal),
      startContainer: (step) => this.#startContainer(step, signal),
    };
    const execute = <K extends PodStep['do']>(step: Extract<PodStep, { do: K }>): Promise<Outcome> =>
      executors[step.do as K](step, signal);
    try {
      for (const group of groups(this.#plan.steps)) {
        signal.throwIfAborted();
        const outcomes = await Promise.all(group.map((step) => execute(step)));
        if (outcomes.includes('stop')) break;
      }
    } finally {
      await this.#images.end();
    }
    return this.#ledger.result(this.#parts.infra.clock);
  }

  async #killPod(signal: AbortSignal): Promise<Outcome> {
    const { pod, snapshot } = this.#request;
    const replacing = this.#plan.steps.find((s) => s.do === 'createSandbox')?.replaces;
    if (replacing !== undefined)
      this.#parts.events.pod(pod, 'Normal', 'SandboxChanged', 'Pod sandbox changed, it will be killed and re-created.');
    if (hasRunningContainers(snapshot)) this.#request.onWaiting?.();
    const failures = await this.#parts.executors.podStopper.stop({ pod, snapshot }, signal);
    this.#ledger.acted();
    for (const failure of failures) this.#ledger.failed(failure);
    return failures.length > 0 ? 'stop' : 'next';
  }

  async #killContainer(step: Extract<PodStep, { do: 'killContainer' }>, signal: AbortSignal): Promise<Outcome> {
    const { pod, snapshot } = this.#request;
    const container = findContainer(pod, step.name)?.container ?? { name: step.name };
    const { kind, message, reason } = step;
    this.#request.onWaiting?.();
    try {
      const request = { pod, container, kind, containerId: step.id, podIps: snapshot.ips, message, reason };
      await this.#parts.executors.stopper.stop(request, signal);
      this.#ledger.acted();
      return 'next';
    } catch (cause) {
      const text = fullErrorText(cause);
      this.#ledger.failed({
        action: 'KillContainer',
        target: step.name,
        reason: 'KillContainerError',
        message: text,
        cause,
      });
      return 'stop';
    }
  }

  async #removeContainer(step: Extract<PodStep, { do: 'removeContainer' }>, signal: AbortSignal): Promise<Outcome> {
    const { pod, snapshot } = this.#request;
    const seen = snapshot.containers.find((c) => c.id === step.id);
    if (seen === undefined) return 'next';
    const known = findContainer(pod, step.name);
    try {
      // A pod that was killed before has nothing running any more.
      if (seen.state === 'running' && !this.#plan.steps.some((s) => s.do === 'killPod') && known !== undefined)
        await this.#parts.executors.stopper.stop(
          { pod, ...known, containerId: seen.id, podIps: snapshot.ips, graceOverrideSeconds: 0, message: 'killing' },
          signal,
        );
      await this.#parts.executors.remover.remove(seen, step.keepLogs, signal);
      // Starting all over must not be a way around the back-off of the one that keeps failing.
      if (seen.state === 'exited' && known !== undefined && step.keepLogs)
        this.#parts.executors.backoff.removed(backoffKey(pod, known.container), nanosToMs(seen.finishedAt));
      this.#ledger.acted();
      return 'next';
    } catch (cause) {
      signal.throwIfAborted();
      const text = fullErrorText(cause);
      // What has ended only takes up space; garbage collection tries again. Runtimes keep some for as long as they run.
      if (seen.state === 'exited' && !step.keepLogs) {
        this.#parts.infra.log.warn('an ended container cannot be removed', {
          pod: podRef(pod),
          container: seen.name,
          cause,
        });
        return 'next';
      }
      this.#ledger.failed({
        action: 'RemoveContainer',
        target: step.name,
        reason: 'RemoveContainerError',
        message: text,
        cause,
      });
      return 'stop';
    }
  }

  async #createSandbox(step: Extract<PodStep, { do: 'createSandbox' }>, signal: AbortSignal): Promise<Outcome> {
    const { pod } = this.#request;
    const { events, infra, resources, executors } = this.#parts;
    infra.metrics.podStarting(pod.spec.hostUsers === false);
    if ((pod.spec.resourceClaims ?? []).length > 0) this.#request.onWaiting?.();
    try {
      await resources.prepare?.(pod, signal);
    } catch (cause) {
      signal.throwIfAborted();
      return this.#sandboxFailed('FailedPrepareDynamicResources', 'Failed to prepare dynamic resources', cause);
    }
    let sandboxId: string;
    let setting: SandboxSetting;
    try {
      setting = await executors.sandboxes.setting(pod, step.attempt, signal);
      sandboxId = await executors.sandboxes.create(pod, setting, signal);
    } catch (cause) {
      signal.throwIfAborted();
      return this.#sandboxFailed('FailedCreatePodSandBox', 'Failed to create pod sandbox', cause);
    }
    this.#prepareImage(setting, signal);
    try {
      const { status, ips } = await executors.sandboxes.read(sandboxId, signal);
      this.#ledger.sandboxStarted(status);
      this.#request.onSandboxReady?.(sandboxId, ips);
      await this.#enter(sandboxId, ips, setting, signal);
      return 'next';
    } catch (cause) {
      signal.throwIfAborted();
      this.#ledger.acted();
      events.pod(pod, 'Warning', 'FailedPodSandBoxStatus', `Unable to get pod sandbox status: ${fullErrorText(cause)}`);
      this.#ledger.failed({
        action: 'CreatePodSandbox',
        target: podRef(pod),
        reason: 'CreatePodSandboxError',
        message: fullErrorText(cause),
        cause,
      });
      return 'stop';
    }
  }

  #sandboxFailed(event: string, text: string, cause: unknown): Outcome {
    const { pod, isTerminating } = this.#request;
    this.#parts.infra.metrics.podFailed(pod.spec.hostUsers === false);
    const message = `${text}: ${fullErrorText(cause)}`;
    if (isTerminating?.() !== true) this.#parts.events.pod(pod, 'Warning', event, message);
    this.#ledger.failed({
      action: event === 'FailedPrepareDynamicResources' ? 'PrepareDynamicResources' : 'CreatePodSandbox',
      target: podRef(pod),
      reason: event === 'FailedPrepareDynamicResources' ? 'PrepareDynamicResourcesError' : 'CreatePodSandboxError',
      message:
        event === 'FailedCreatePodSandBox'
          ? `Failed to create sandbox for pod ${goQuote(podRef(pod))}: ${fullErrorText(cause)}`
          : message,
      cause,
    });
    return 'stop';
  }

  /** The first container's image is looked at while the sandbox tells its address. */
  #prepareImage(setting: SandboxSetting, signal: AbortSignal): void {
    const first = this.#plan.steps.find((s) => s.do === 'startContainer');
    const entry = first === undefined ? undefined : findContainer(this.#request.pod, first.name);
    if (entry !== undefined && this.#backoffOf(entry) === undefined) this.#images.prepare(entry, setting, signal);
  }

  async #enter(
    sandboxId: string,
    ips: readonly string[],
    setting: SandboxSetting,
    signal: AbortSignal,
  ): Promise<SyncContext> {
    const { pod } = this.#request;
    const podIps = pod.spec.hostNetwork === true ? this.#parts.cluster.nodeIps() : ips;
    const starting = this.#plan.steps.some((s) => s.do === 'startContainer');
    const imageVolumes = starting ? await this.#images.volumes(setting, signal) : new Map();
    this.#context = { ...this.#request, ...setting, sandboxId, podIps, imageVolumes };
    return this.#context;
  }

  /** The context of the sandbox that is kept, made when the first container needs it. */
  async #contextFor(signal: AbortSignal): Promise<SyncContext> {
    if (this.#context !== undefined) return this.#context;
    const { pod, snapshot } = this.#request;
    const sandbox = snapshot.sandboxes.find((s) => s.id === this.#plan.sandboxId);
    const setting = await this.#parts.executors.sandboxes.setting(pod, sandbox?.attempt ?? 0, signal);
    return this.#enter(sandbox?.id ?? '', sandbox?.ips ?? [], setting, signal);
  }

  async #resize(step: Extract<PodStep, { do: 'resize' }>, signal: AbortSignal): Promise<Outcome> {
    const { pod, snapshot } = this.#request;
    const { clock, metrics } = this.#parts.infra;
    const start = clock.monotonic();
    try {
      const sandboxId = this.#plan.sandboxId ?? this.#context?.sandboxId ?? '';
      await this.#parts.executors.resizer.resize(pod, snapshot, sandboxId, step.restarting, signal);
      this.#ledger.acted();
      metrics.resized(true, clock.monotonic() - start);
    } catch (err) {
      signal.throwIfAborted();
      metrics.resized(false, clock.monotonic() - start);
      this.#ledger.resizeFailed(fullErrorText(err), pod);
      // Containers stopped for the resize must not stay down for it, so the sync goes on.
    }
    return 'next';
  }

  async #startContainer(step: Extract<PodStep, { do: 'startContainer' }>, signal: AbortSignal): Promise<Outcome> {
    const entry = findContainer(this.#request.pod, step.name);
    if (entry === undefined) return 'next';
    const { infra, executors } = this.#parts;
    const waiting = this.#backoffOf(entry);
    if (waiting !== undefined) {
      this.#reportBackoff(entry, waiting);
      return step.blocks ? 'stop' : 'next';
    }
    if (!(await this.#removeLeftover(step, signal))) return step.blocks ? 'stop' : 'next';
    const undoBackoff = this.#countStart(entry);
    infra.metrics.containerStarting(TYPE[entry.kind]);
    try {
      const context = await this.#contextFor(signal);
      const id = await executors.starter.start(entry, () => this.#images.of(entry, context, signal), context, signal);
      this.#ledger.started(step.name, id);
      this.#countImageVolumes(entry, false);
      return 'next';
    } catch (err) {
      signal.throwIfAborted();
      const fault =
        err instanceof ContainerStartError
          ? err
          : new ContainerStartError('CreateContainerConfigError', fullErrorText(err), err);
      infra.metrics.containerFailed(TYPE[entry.kind], fault.reason);
      this.#countImageVolumes(entry, fault.message.startsWith(IMAGE_VOLUME_FAILED));
      // From its creation on the runtime holds something that the next look must see.
      if (AFTER_CREATE.includes(fault.reason)) this.#ledger.acted();
      if (await this.#sandboxIsGoing(signal)) {
        // It was stopped behind our back: no fault of the container, and the next look makes a new one.
        undoBackoff();
        this.#ledger.acted();
        this.#ledger.retryBy(infra.clock.now());
        return 'stop';
      }
      this.#ledger.notStarted(step.name, fault, retryAtOf(fault));
      return step.blocks ? 'stop' : 'next';
    }
  }

  #countImageVolumes({ container }: PodContainer, failed: boolean): void {
    const volumes = this.#context?.imageVolumes;
    if (volumes === undefined || volumes.size === 0) return;
    const mounted = (container.volumeMounts ?? []).filter(({ name }) => volumes.has(name)).length;
    this.#parts.infra.metrics.imageVolumes(volumes.size, mounted, failed);
  }

  /** False when it cannot be removed yet: a start that was cut off may still be under way in the runtime. */
  async #removeLeftover(step: Extract<PodStep, { do: 'startContainer' }>, signal: AbortSignal): Promise<boolean> {
    const leftover = this.#request.snapshot.containers.find((c) => c.id === step.leftover);
    if (leftover === undefined) return true;
    try {
      if (await this.#hasStarted(leftover.id, signal)) {
        this.#ledger.acted();
        this.#ledger.retryBy(this.#parts.infra.clock.now());
        return false;
      }
      await this.#parts.executors.remover.remove(leftover, true, signal);
      return true;
    } catch (cause) {
      signal.throwIfAborted();
      const message = fullErrorText(cause);
      this.#ledger.failed({
        action: 'RemoveContainer',
        target: step.name,
        reason: 'RemoveContainerError',
        message,
        cause,
      });
      this.#ledger.acted();
      this.#ledger.retryBy(this.#parts.infra.clock.now() + LEFTOVER_RETRY_MS);
      return false;
    }
  }

  /** A start that an agent did not live to see the end of: what it started runs on, or ended as it did. */
  async #hasStarted(containerId: string, signal: AbortSignal): Promise<boolean> {
    try {
      const { status } = await this.#parts.cri.containerStatus({ containerId }, signal);
      return status?.state === ContainerState.CONTAINER_RUNNING || status?.state === ContainerState.CONTAINER_EXITED;
    } catch (err) {
      if (isFault(err, 'notFound')) return false;
      throw err;
    }
  }

  #lastEnd({ container }: PodContainer): number | undefined {
    const ended = this.#request.snapshot.containers.find((c) => c.name === container.name && c.state === 'exited');
    if (ended !== undefined) return nanosToMs(ended.finishedAt);
    return this.#parts.executors.backoff.lastEnd(backoffKey(this.#request.pod, container));
  }

  #backoffOf(entry: PodContainer): { delayMs: number; retryAt: number } | undefined {
    const ended = this.#lastEnd(entry);
    if (ended === undefined) return undefined;
    const key = backoffKey(this.#request.pod, entry.container);
    return this.#parts.executors.backoff.waiting(key, ended, this.#parts.infra.clock.now());
  }

  /** Returns what takes the count back. */
  #countStart(entry: PodContainer): () => void {
    const ended = this.#lastEnd(entry);
    if (ended === undefined) return () => undefined;
    const key = backoffKey(this.#request.pod, entry.container);
    return this.#parts.executors.backoff.started(key, ended, this.#parts.infra.clock.now());
  }

  /** Only asked after a failure, of a sandbox that was there before this sync. */
  async #sandboxIsGoing(signal: AbortSignal): Promise<boolean> {
    const kept = this.#plan.sandboxId;
    if (kept === undefined) return false;
    try {
      const { status } = await this.#parts.executors.sandboxes.read(kept, signal);
      return status.state === PodSandboxState.SANDBOX_NOTREADY;
    } catch (err) {
      return isFault(err, 'notFound');
    }
  }

  #reportBackoff({ kind, container }: PodContainer, waiting: { delayMs: number; retryAt: number }): void {
    const { pod } = this.#request;
    this.#parts.events.pod(
      pod,
      'Warning',
      'BackOff',
      `Back-off restarting failed container ${container.name} in pod ${podRef(pod)}`,
      { fieldPath: containerFieldPath(kind, container.name) },
    );
    const delay = formatDurationMs(waiting.delayMs);
    const message = `back-off ${delay} restarting failed container=${container.name} pod=${podRef(pod)}`;
    this.#ledger.notStarted(container.name, new ContainerStartError('CrashLoopBackOff', message), waiting.retryAt);
  }
}

/** Image back-offs say when they end. */
const retryAtOf = (fault: ContainerStartError): number | undefined =>
  'retryAt' in fault && typeof fault.retryAt === 'number' ? fault.retryAt : undefined;

/** Kills that stand together form one group; every other step is alone. */
function* groups(steps: readonly PodStep[]): Iterable<readonly PodStep[]> {
  let kills: PodStep[] = [];
  for (const step of steps) {
    if (step.do === 'killContainer') {
      kills.push(step);
      continue;
    }
    if (kills.length > 0) yield kills;
    kills = [];
    yield [step];
  }
  if (kills.length > 0) yield kills;
}
