// Tells people and the pod's worker about out-of-memory kills. The machine running out is a node event, as upstream; a
// kill at a container's or pod's limit is told with the limit that was hit, which upstream does not say. Reads the
// kernel's messages when something hints at a kill, and now and then for kills that nothing hints at.
import { watch, type FSWatcher } from 'node:fs';
import type { EventRecorder } from '../core/events.ts';
import type { ContainerId, PodUid } from '../core/ids.ts';
import { containerFieldPath, findContainer, type Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Wake } from '../lib/wake.ts';
import { levelOfLimit, ownerOfCgroup, type LimitLevel } from './cgroup-owner.ts';
import { Kmsg } from './kmsg.ts';
import { OomMessages, type OomKill } from './oom-messages.ts';

export type ContainerOom = {
  /** The cgroup the process lived in. */
  readonly cgroupPath: string;
  readonly podUid: PodUid;
  readonly containerId?: ContainerId;
  readonly pid: number;
  readonly process: string;
  /** The cgroup whose limit was hit, and at which level it is. */
  readonly limit: { readonly path: string; readonly level: LimitLevel };
};

interface KnownPods {
  pod(uid: PodUid): Pod | undefined;
  /** The container of that pod with this id, as far as known. */
  containerName(uid: PodUid, id: ContainerId): string | undefined;
}

export type OomWatcherDeps = {
  readonly pods: KnownPods;
  readonly events: EventRecorder;
  readonly onContainerOom: (oom: ContainerOom) => void;
  readonly clock: Clock;
  readonly log: Logger;
};

export type OomWatcherOptions = {
  readonly kmsgPath: string;
  /** In a user namespace /dev/kmsg may be closed to us; otherwise that stops the kubelet. */
  readonly mayBeClosed: boolean;
  /** On cgroup v2, of the cgroup above all pods: the kernel counts every kill below it there, and tells who watches. */
  readonly memoryEventsPath?: string | undefined;
};

/** For kills outside of pods, and of single processes where neither runtime nor kernel tell. */
const SWEEP_MS = 10_000;
/** Hints come in bursts: a cgroup at its limit gives many a second. */
const SPACING_MS = 100;
/** The kernel counts a kill before it writes about it, and a slow console holds that up: a look in vain is repeated. */
const AGAIN_MS = 1000;

export class OomWatcher implements Runnable {
  readonly name = 'oom-watcher';
  readonly #deps: OomWatcherDeps;
  readonly #o: OomWatcherOptions;
  readonly #wake = new Wake();
  #watcher: FSWatcher | undefined;

  constructor(deps: OomWatcherDeps, options: OomWatcherOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  /** Something may have been killed: a container ended, or the runtime says so. */
  lookSoon(): void {
    this.#wake.wake();
  }

  /** A container that ended may have been killed. */
  observed(events: readonly { readonly type: string }[]): void {
    if (events.some(({ type }) => type === 'ContainerDied')) this.lookSoon();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const kmsg = await this.#open();
    const messages = new OomMessages();
    let isHinted = false;
    try {
      while (!signal.aborted) {
        let kills = 0;
        try {
          this.#watchCounters();
          for (const message of (await kmsg?.take()) ?? []) {
            const kill = messages.push(message);
            if (kill === undefined) continue;
            kills++;
            this.#tell(kill);
          }
        } catch (err) {
          log.error('kernel messages could not be read', { err });
        }
        const isInVain = isHinted && kills === 0;
        isHinted = await this.#wake.rest(clock, isInVain ? AGAIN_MS : SWEEP_MS, signal);
        await clock.sleep(SPACING_MS, signal);
      }
    } finally {
      this.#unwatch();
      await kmsg?.close();
    }
  }

  /** Tried again at every look: the cgroup is made after the start, and may be made anew. */
  #watchCounters(): void {
    const path = this.#o.memoryEventsPath;
    if (path === undefined || this.#watcher !== undefined) return;
    try {
      this.#watcher = watch(path, { persistent: false }, (event) => {
        if (event === 'rename') this.#unwatch();
        this.lookSoon();
      });
      this.#watcher.on('error', () => this.#unwatch());
    } catch (err) {
      this.#deps.log.debug('memory events are not watched', { path, err });
    }
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  async #open(): Promise<Kmsg | undefined> {
    try {
      return await Kmsg.open(this.#o.kmsgPath);
    } catch (err) {
      if (!this.#o.mayBeClosed) throw err;
      this.#deps.log.warn('kernel messages cannot be read, out-of-memory kills will not be reported', { err });
      return undefined;
    }
  }

  #tell(kill: OomKill): void {
    const { events, log, onContainerOom } = this.#deps;
    const level = levelOfLimit(kill.limitPath);
    log.info('the kernel killed a process for memory', { ...kill, level });
    if (level === 'node')
      events.node('Warning', 'SystemOOM', `System OOM encountered, victim process: ${kill.process}, pid: ${kill.pid}`);
    const owner = ownerOfCgroup(kill.victimPath);
    if (owner.podUid === undefined) return;
    this.#tellPod(owner.podUid, owner.containerId, kill, level);
    const limit = { path: kill.limitPath, level };
    onContainerOom({
      cgroupPath: kill.victimPath,
      ...owner,
      podUid: owner.podUid,
      pid: kill.pid,
      process: kill.process,
      limit,
    });
  }

  #tellPod(uid: PodUid, id: ContainerId | undefined, kill: OomKill, level: LimitLevel): void {
    const { pods, events } = this.#deps;
    const pod = pods.pod(uid);
    if (pod === undefined) return;
    const name = id === undefined ? undefined : pods.containerName(uid, id);
    const found = name === undefined ? undefined : findContainer(pod, name);
    const options =
      found === undefined ? undefined : { fieldPath: containerFieldPath(found.kind, found.container.name) };
    events.pod(pod, 'Warning', 'OOMKilling', oomText(kill, level), options);
  }
}

const LIMIT_TEXT: Record<LimitLevel, string> = {
  container: "the container's memory limit",
  pod: "the pod's memory limit",
  pods: 'the memory limit across pods',
  node: 'the memory of the node',
};

const oomText = (kill: OomKill, level: LimitLevel): string =>
  `Process ${kill.process} (pid ${kill.pid}) was killed: ${LIMIT_TEXT[level]} was exhausted`;
