// Does what the plan says, a bounded amount at a time. What cannot be removed is logged and tried again next time.
import { join } from 'node:path';
import type { EventRecorder } from '../core/events.ts';
import type { ContainerId, PodUid, SandboxId } from '../core/ids.ts';
import { containerIdOf } from '../core/log-links.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { QuietWait, type Quiet } from '../lib/quiet-wait.ts';
import { Semaphore } from '../lib/semaphore.ts';
import type { Runnable } from '../lib/supervise.ts';
import type { ContainerRemover } from './container-remover.ts';
import type { GarbageRuntime } from './cri-garbage.ts';
import { deadLinks, namesIn, removeFile, removeLogs } from './log-places.ts';
import {
  planContainers,
  planLogDirectories,
  planPrune,
  planSandboxes,
  type GcPolicy,
  type IsRemovable,
} from './plan.ts';

/** What pod workers know. Unknown pods are removable once all pods are known. */
export interface PodLifecycles {
  /** Evicted, or deleted and terminated. */
  contentRemovable(uid: PodUid): boolean;
  /** Terminated. */
  runtimeRemovable(uid: PodUid): boolean;
}

export type CollectorDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: Pick<EventRecorder, 'node'>;
  readonly runtime: GarbageRuntime;
  readonly pods: PodLifecycles;
  readonly remover: Pick<ContainerRemover, 'removeContainer'>;
  readonly sourcesReady: () => boolean;
  /** Resolves when no pods are starting or being stopped: they come first, what can wait does so for a while. */
  readonly quiet?: Quiet;
};
export type CollectorOptions = {
  readonly policy: GcPolicy;
  readonly everyMs: number;
  /** `/var/log/pods` */
  readonly podLogs: string;
  /** `/var/log/containers` */
  readonly containerLogs: string;
  readonly maxPerPass?: number;
  readonly concurrency?: number;
};

export type Collected = { readonly removed: number; readonly failed: number; readonly left: number };

/** What a removal waits for. */
type Before = () => Promise<void>;
const AT_ONCE: Before = () => Promise.resolve();

const MAX_PER_PASS = 200;
const CONCURRENCY = 5;
/** When a pass could not do everything. */
const SOON_MS = 1000;
/** How long pods that start and stop come first. Not longer: on some nodes there are always some. */
const LONGEST_POSTPONED_MS = 30_000;
/** Pods asked for one by one when the runtime cannot list all at once. */
const MAX_PODS_ASKED = 500;
const MAX_STUCK = 10_000;
const NOTHING: ReadonlySet<SandboxId> = new Set();

export class GarbageCollector implements Runnable {
  readonly name = 'garbage-collector';
  readonly #deps: CollectorDeps;
  readonly #opts: CollectorOptions;
  readonly #permits: Semaphore;
  readonly #limit: number;
  /** Of the regular pass that is under way. */
  #wait: QuietWait | undefined;
  /** One pass at a time, whoever asks for it. */
  readonly #turn = new Semaphore(1);
  readonly #stuck = new Set<string>();
  /** Containers that had not ended when they were listed last: their links stay, whatever became of their logs. */
  #alive = new Set<ContainerId>();

  constructor(deps: CollectorDeps, opts: CollectorOptions) {
    this.#deps = deps;
    this.#opts = opts;
    this.#permits = new Semaphore(opts.concurrency ?? CONCURRENCY);
    this.#limit = opts.maxPerPass ?? MAX_PER_PASS;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    await clock.sleep(this.#opts.everyMs, signal);
    let left = 0;
    while (!signal.aborted) {
      try {
        // What an earlier pass left undone has waited long enough.
        const pass = left === 0 ? this.#politePass(signal) : this.#pass({ allUnused: false }, signal);
        left = 0;
        const result = await pass;
        // Where nothing works, hurry does not help.
        left = result.removed > 0 ? result.left : 0;
      } catch (err) {
        if (!signal.aborted) this.#failed(err);
      }
      await clock.sleep(left > 0 ? Math.min(SOON_MS, this.#opts.everyMs) : this.#opts.everyMs, signal);
    }
  }

  #failed(err: unknown): void {
    this.#deps.log.error('garbage collection failed', { err });
    this.#deps.events.node('Warning', 'ContainerGCFailed', messageOf(err));
  }

  /** `allUnused`: also what terminated pods that still exist have left; eviction asks for that. Nobody waits then. */
  collect(how: { readonly allUnused: boolean }, signal: AbortSignal): Promise<Collected> {
    this.#wait?.end();
    return this.#pass(how, signal);
  }

  /** Resolves when nobody is in a hurry to start or stop pods, or when that has taken too long. */
  async whenQuiet(signal: AbortSignal): Promise<void> {
    const wait = this.#politeness(signal);
    try {
      await wait.wait();
    } finally {
      wait.end();
    }
  }

  #politeness(signal: AbortSignal): QuietWait {
    const { clock, quiet } = this.#deps;
    return new QuietWait(clock, quiet ?? AT_ONCE, LONGEST_POSTPONED_MS, signal);
  }

  /** A regular pass, which lets pods start and stop first. */
  async #politePass(signal: AbortSignal): Promise<Collected> {
    const wait = this.#politeness(signal);
    this.#wait = wait;
    try {
      return await this.#pass({ allUnused: false, before: () => wait.wait() }, signal);
    } finally {
      wait.end();
      this.#wait = undefined;
    }
  }

  #pass(how: { readonly allUnused: boolean; readonly before?: Before }, signal: AbortSignal): Promise<Collected> {
    const { before = AT_ONCE } = how;
    return this.#turn.run(signal, async () => {
      const total = { removed: 0, failed: 0, left: 0 };
      const { pods } = this.#deps;
      await before();
      const ready = this.#deps.sourcesReady();
      const isRemovable: IsRemovable = (uid) =>
        ready && (pods.contentRemovable(uid) || (how.allUnused && pods.runtimeRemovable(uid)));
      for (const phase of [this.#containers, this.#sandboxes, this.#logs]) {
        const result = await phase.call(this, isRemovable, before, signal);
        total.removed += result.removed;
        total.failed += result.failed;
        total.left += result.left;
      }
      if (total.removed > 0) this.#deps.log.debug('garbage removed', total);
      return total;
    });
  }

  /** Dead instances of one pod beyond the newest `keep` of each container, or of the one named. */
  prune(snapshot: PodSnapshot, keep: number, signal: AbortSignal, only?: string): Promise<Collected> {
    return this.#removeOf(snapshot, planPrune(snapshot, keep, only), signal);
  }

  /** Every container of a pod that does not run, also those that were never started: nobody will use them again. */
  removeContainersOf(snapshot: PodSnapshot, signal: AbortSignal): Promise<Collected> {
    const ids = snapshot.containers.filter((c) => c.state !== 'running').map((c) => c.id);
    return this.#removeOf(snapshot, ids, signal);
  }

  #removeOf(snapshot: PodSnapshot, ids: readonly ContainerId[], signal: AbortSignal): Promise<Collected> {
    const seen = new Map(snapshot.containers.map((c) => [c.id, c]));
    return this.#each(
      ids,
      (id) =>
        this.#deps.remover.removeContainer(
          {
            id,
            podUid: snapshot.uid,
            podName: snapshot.name,
            namespace: snapshot.namespace,
            name: seen.get(id)?.name ?? '',
            // Of a container that could only be listed it is not known.
            ...knownLog(seen.get(id)),
          },
          false,
          signal,
        ),
      AT_ONCE,
      signal,
    );
  }

  async #containers(isRemovable: IsRemovable, before: Before, signal: AbortSignal): Promise<Collected> {
    const listed = await this.#deps.runtime.containers(() => this.#knownPods(), signal);
    const plan = planContainers(listed, isRemovable, this.#opts.policy, this.#deps.clock.nowNanos());
    this.#alive = new Set(listed.filter((c) => c.state !== 'exited').map((c) => c.id));
    for (const { id } of plan) this.#alive.delete(id);
    return this.#each(
      plan,
      async (container) => {
        // Nobody knows whether it runs.
        if (container.state === 'unknown') await this.#deps.runtime.kill(container.id, signal);
        await this.#deps.remover.removeContainer(container, false, signal);
      },
      before,
      signal,
    );
  }

  async #sandboxes(isRemovable: IsRemovable, before: Before, signal: AbortSignal): Promise<Collected> {
    const { runtime } = this.#deps;
    const sandboxes = await runtime.sandboxes(() => this.#knownPods(), signal);
    if (planSandboxes(sandboxes, NOTHING, isRemovable).length === 0) return { removed: 0, failed: 0, left: 0 };
    // Asked after the sandboxes: a container made since then is seen and keeps its sandbox.
    const containers = await runtime.containers(() => this.#knownPods(), signal);
    const plan = planSandboxes(sandboxes, new Set(containers.map((c) => c.sandboxId)), isRemovable);
    return this.#each(plan, (sandbox) => runtime.removeSandbox(sandbox.id, signal), before, signal);
  }

  async #logs(isRemovable: IsRemovable, before: Before, signal: AbortSignal): Promise<Collected> {
    const { podLogs, containerLogs } = this.#opts;
    const directories = planLogDirectories(await namesIn(podLogs), isRemovable);
    const one = await this.#each(directories, (name) => removeLogs(join(podLogs, name), signal), before, signal);
    const links = await deadLinks(containerLogs, this.#limit, (name) => {
      const owner = containerIdOf(name);
      return owner !== undefined && this.#alive.has(owner as ContainerId);
    });
    const two = await this.#each(links, (name) => this.#removeLink(name, signal), before, signal);
    return { removed: one.removed + two.removed, failed: one.failed + two.failed, left: one.left + two.left };
  }

  /** A log that is being rotated is gone for a moment; the link of a container that is not dead stays. */
  async #removeLink(name: string, signal: AbortSignal): Promise<void> {
    const owner = containerIdOf(name);
    const container =
      owner === undefined ? undefined : await this.#deps.runtime.container(owner as ContainerId, signal);
    if (container !== undefined && container.state !== 'exited') return;
    await removeFile(join(this.#opts.containerLogs, name));
  }

  /** As many as a pass may, some at a time, each after `before`; a failure is counted and does not stop the others. */
  async #each<T>(
    items: readonly T[],
    work: (item: T) => Promise<void>,
    before: Before,
    signal: AbortSignal,
  ): Promise<Collected> {
    let removed = 0;
    let failed = 0;
    // What failed last time waits behind the rest, or it would use up every pass.
    const now = items
      .filter((item) => !this.#stuck.has(labelOf(item)))
      .concat(items.filter((item) => this.#stuck.has(labelOf(item))))
      .slice(0, this.#limit);
    const removeOne = async (item: T): Promise<void> => {
      try {
        await work(item);
        this.#stuck.delete(labelOf(item));
        removed++;
      } catch (err) {
        signal.throwIfAborted();
        failed++;
        if (this.#stuck.size >= MAX_STUCK) this.#stuck.clear();
        this.#stuck.add(labelOf(item));
        this.#deps.log.warn('garbage not removed', { item: labelOf(item), err });
      }
    };
    const queue = now.values();
    const worker = async (): Promise<void> => {
      for (const item of queue) {
        // Without a permit in hand: a pod that starts may need one to remove what is in its way.
        await before();
        await this.#permits.run(signal, () => removeOne(item));
      }
    };
    await Promise.all(Array.from({ length: this.#opts.concurrency ?? CONCURRENCY }, worker));
    return { removed, failed, left: items.length - now.length };
  }

  async #knownPods(): Promise<readonly string[]> {
    const names = await namesIn(this.#opts.podLogs);
    return names.map((name) => name.slice(name.lastIndexOf('_') + 1)).slice(0, MAX_PODS_ASKED);
  }
}

const knownLog = (seen: { readonly logPath: string } | undefined): { readonly logPath?: string } =>
  seen === undefined || seen.logPath === '' ? {} : { logPath: seen.logPath };

const labelOf = (item: unknown): string =>
  typeof item === 'object' && item !== null && 'id' in item ? String(item.id) : String(item);
