// Removes a container that ended: what it held is freed, its logs and the link to them go, then the runtime's own. Every
// removal on the node goes through here; one that is under way is not asked for twice.
import { join } from 'node:path';
import { podUid, type ContainerId, type PodUid } from '../core/ids.ts';
import { logLinkName } from '../core/log-links.ts';
import { POD_NAME, POD_NAMESPACE, POD_UID } from '../core/runtime-labels.ts';
import type { ObservedContainer } from '../core/snapshot.ts';
import type { GarbageRuntime } from './cri-garbage.ts';
import { removeFile } from './log-places.ts';

export type RemovableContainer = {
  readonly id: ContainerId;
  readonly podUid: PodUid;
  readonly podName: string;
  readonly namespace: string;
  readonly name: string;
  /** Asked of the runtime where it is not known. */
  readonly logPath?: string;
};

export type ContainerRemoverDeps = {
  readonly runtime: Pick<GarbageRuntime, 'container' | 'removeContainer'>;
  /** Takes away a log and everything it was rotated into. */
  readonly removeLogs: (logPath: string, signal: AbortSignal) => Promise<void>;
  /** Told before a container goes, so that its exclusive resources are freed. */
  readonly postStop: (podUid: PodUid, container: string, id: ContainerId) => void;
};

export type ContainerRemoverOptions = {
  /** `/var/log/containers` */
  readonly containerLogs: string;
};

export class ContainerRemover {
  readonly #deps: ContainerRemoverDeps;
  readonly #containerLogs: string;
  /** Prunes, finished pods, restarts and regular passes overlap. */
  readonly #removing = new Map<ContainerId, Promise<void>>();

  constructor(deps: ContainerRemoverDeps, opts: ContainerRemoverOptions) {
    this.#deps = deps;
    this.#containerLogs = opts.containerLogs;
  }

  /** As the runtime showed it, with its logs unless they are to be kept. */
  remove(container: ObservedContainer, keepLogs: boolean, signal: AbortSignal): Promise<void> {
    const { id, name, labels, logPath } = container;
    const pod = {
      podUid: podUid(labels[POD_UID] ?? ''),
      podName: labels[POD_NAME] ?? '',
      namespace: labels[POD_NAMESPACE] ?? '',
    };
    return this.removeContainer({ id, name, logPath, ...pod }, keepLogs, signal);
  }

  removeContainer(container: RemovableContainer, keepLogs: boolean, signal: AbortSignal): Promise<void> {
    const { id } = container;
    const underWay = this.#removing.get(id);
    if (underWay !== undefined) return underWay;
    const removal = this.#remove(container, keepLogs, signal).finally(() => this.#removing.delete(id));
    this.#removing.set(id, removal);
    return removal;
  }

  async #remove(container: RemovableContainer, keepLogs: boolean, signal: AbortSignal): Promise<void> {
    const { runtime, postStop } = this.#deps;
    postStop(container.podUid, container.name, container.id);
    if (!keepLogs) await this.#removeLogs(container, signal);
    await runtime.removeContainer(container.id, signal);
  }

  async #removeLogs(container: RemovableContainer, signal: AbortSignal): Promise<void> {
    const { id, podName, namespace, name } = container;
    const logPath = container.logPath ?? (await this.#deps.runtime.container(id, signal))?.logPath ?? '';
    if (logPath !== '') await this.#deps.removeLogs(logPath, signal);
    await removeFile(join(this.#containerLogs, logLinkName(podName, namespace, name, id)));
  }
}
