// Stopping containers: the pre-stop hook within the grace period, sidecars after everybody else, then StopContainer.
import type { CriRuntime } from '../cri/services.ts';
import type { EventRecorder } from '../core/events.ts';
import {
  containerFieldPath,
  isSidecar,
  podRef,
  type Container,
  type ContainerKind,
  type LifecycleHandler,
  type Pod,
} from '../core/pod.ts';
import { childScope } from '../lib/abort.ts';
import { isFault } from '../lib/errors.ts';
import type { HookRunner } from './hooks.ts';
import type { Infra } from './needs.ts';
import type { KillReason } from './plan-steps.ts';

/** Less than this is never given: a container should have a chance to see its signal. */
const MIN_GRACE_SECONDS = 2;

export type ContainerStopRequest = {
  readonly pod: Pod;
  readonly container: Container;
  /** Undefined for a container that its pod's spec does not know. */
  readonly kind: ContainerKind | undefined;
  readonly containerId: string;
  readonly podIps: readonly string[];
  /** Replaces `Stopping container X`. */
  readonly message?: string;
  readonly reason?: KillReason;
  readonly graceOverrideSeconds?: number;
  readonly order?: StopOrder;
};

/** The grace a container has by its pod, its probes and the reason it must go. */
export function graceSeconds(pod: Pod, container: Container, reason: KillReason | undefined): number {
  const { deletionGracePeriodSeconds } = pod.metadata;
  if (deletionGracePeriodSeconds !== undefined) return deletionGracePeriodSeconds;
  const { terminationGracePeriodSeconds } = pod.spec;
  if (terminationGracePeriodSeconds === undefined) return MIN_GRACE_SECONDS;
  const probe =
    reason === 'startupProbe'
      ? container.startupProbe
      : reason === 'livenessProbe'
        ? container.livenessProbe
        : undefined;
  return probe?.terminationGracePeriodSeconds ?? terminationGracePeriodSeconds;
}

const fieldPathOf = ({ kind, container }: ContainerStopRequest): string =>
  kind === undefined ? `implicitly required container ${container.name}` : containerFieldPath(kind, container.name);

/** Who waits for whom when a pod with sidecars stops: main containers first, then sidecars, last started first. */
export class StopOrder {
  readonly #before = new Map<string, readonly string[]>();
  readonly #stopped = new Map<string, { promise: Promise<void>; resolve: () => void }>();

  constructor(pod: Pod, running: readonly string[]) {
    for (const name of running) this.#stopped.set(name, Promise.withResolvers<void>());
    const main = pod.spec.containers.map((c) => c.name);
    const sidecars = (pod.spec.initContainers ?? []).filter(isSidecar).map((c) => c.name);
    sidecars.forEach((name, i) => this.#before.set(name, [...main, ...sidecars.slice(i + 1)]));
  }

  /** Resolves when everybody who must go first is gone. */
  async turnOf(name: string): Promise<void> {
    const others = (this.#before.get(name) ?? []).map((other) => this.#stopped.get(other)?.promise);
    await Promise.all(others.filter((promise) => promise !== undefined));
  }

  stopped(name: string): void {
    this.#stopped.get(name)?.resolve();
  }
}

export const hasSidecars = (pod: Pod): boolean => (pod.spec.initContainers ?? []).some(isSidecar);

export type StopperDeps = {
  readonly cri: CriRuntime;
  readonly hooks: HookRunner;
  readonly events: EventRecorder;
  readonly infra: Infra;
};

export class ContainerStopper {
  readonly #deps: StopperDeps;

  constructor(deps: StopperDeps) {
    this.#deps = deps;
  }

  async stop(request: ContainerStopRequest, signal: AbortSignal): Promise<void> {
    const { pod, container, order } = request;
    const { events, infra } = this.#deps;
    const fieldPath = fieldPathOf(request);
    events.pod(pod, 'Normal', 'Killing', request.message || `Stopping container ${container.name}`, { fieldPath });
    let grace = request.graceOverrideSeconds ?? graceSeconds(pod, container, request.reason);
    const preStop = container.lifecycle?.preStop;
    // A hook that outlasts the grace period goes on until its container is gone.
    const hook = childScope(signal);
    try {
      if (preStop !== undefined && grace > 0)
        grace -= await this.#wholeSeconds(() => this.#preStop(preStop, request, grace, hook.signal));
      if (order !== undefined && grace > 0)
        grace -= await this.#wholeSeconds(() => this.#within(grace, () => order.turnOf(container.name), signal));
      const timeout = Math.max(grace, MIN_GRACE_SECONDS);
      infra.log.debug('stopping container', { pod: podRef(pod), container: container.name, graceSeconds: timeout });
      await this.#stopContainer(request.containerId, timeout, signal);
    } finally {
      hook.abort();
      hook.release();
    }
    order?.stopped(container.name);
  }

  async #stopContainer(containerId: string, timeout: number, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.cri.stopContainer({ containerId, timeout }, signal);
    } catch (err) {
      if (!isFault(err, 'notFound')) throw err;
    }
  }

  /** Waits for the hook, but no longer than the grace period. */
  async #preStop(
    handler: LifecycleHandler,
    request: ContainerStopRequest,
    grace: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { pod, container } = request;
    const { log } = this.#deps.infra;
    const fields = { pod: podRef(pod), container: container.name };
    let ended = false;
    const run = this.#deps.hooks.run(handler, request, signal).then(
      () => (ended = true),
      (err: unknown) => {
        if (signal.aborted) return;
        ended = true;
        log.warn('pre-stop hook failed', { ...fields, err });
        this.#deps.events.pod(pod, 'Warning', 'FailedPreStopHook', 'PreStopHook failed', {
          fieldPath: fieldPathOf(request),
        });
      },
    );
    await this.#within(grace, async () => void (await run), signal);
    if (!ended) log.warn('pre-stop hook outlasted the grace period', fields);
  }

  /** Waits for `turn`, but no longer than the grace that is left. */
  async #within(grace: number, turn: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps.infra;
    const scope = new AbortController();
    const stop = (): void => scope.abort();
    signal.addEventListener('abort', stop, { once: true });
    try {
      await Promise.race([turn(), clock.sleep(grace * 1000, scope.signal)]);
    } finally {
      scope.abort();
      signal.removeEventListener('abort', stop);
    }
    signal.throwIfAborted();
  }

  async #wholeSeconds(work: () => Promise<void>): Promise<number> {
    const { clock } = this.#deps.infra;
    const from = clock.monotonic();
    await work();
    return Math.trunc((clock.monotonic() - from) / 1000);
  }
}
