// What a container left behind when it ended: the tail of its termination message file, or of its log. Read once per
// container, in the background of the worker, and remembered until the container or its pod is gone.
import type { ContainerId, PodUid } from '../core/ids.ts';
import { absolutePath } from '../core/paths.ts';
import type { ObservedContainer, PodSnapshot } from '../core/snapshot.ts';
import { messageOf } from '../lib/errors.ts';

const PATH = 'io.kubernetes.container.terminationMessagePath';
const POLICY = 'io.kubernetes.container.terminationMessagePolicy';
const MAX_FILE_BYTES = 4096;

export type TerminationMessageDeps = {
  /** Reads the end of a container log, without the runtime's line prefixes. */
  readonly logTail: (path: string) => Promise<string>;
  /**
   * Reads the end of a regular file, undefined when there is none. A pod may have mounted anything in its place, a pipe or
   * a filesystem that does not answer among them: it must settle all the same.
   */
  readonly fileTail: (path: string, maxBytes: number) => Promise<Buffer | undefined>;
};

export class TerminationMessages {
  readonly #deps: TerminationMessageDeps;
  readonly #known = new Map<ContainerId, { readonly pod: PodUid; readonly message: string }>();

  constructor(deps: TerminationMessageDeps) {
    this.#deps = deps;
  }

  /** Reads what is missing for the ended containers of a pod, and forgets containers that are gone. */
  async load(snapshot: PodSnapshot, previous: PodSnapshot | undefined): Promise<void> {
    const ended = snapshot.containers.filter((c) => c.state === 'exited' && !this.#known.has(c.id));
    const pod = snapshot.uid;
    await Promise.all(ended.map(async (c) => this.#known.set(c.id, { pod, message: await this.#read(c) })));
    const alive = new Set(snapshot.containers.map((c) => c.id));
    for (const c of previous?.containers ?? []) if (!alive.has(c.id)) this.#known.delete(c.id);
  }

  of(container: ObservedContainer): string {
    return this.#known.get(container.id)?.message ?? '';
  }

  /** Nobody will ask about other pods any more. */
  keepOnly(pods: ReadonlySet<PodUid>): void {
    for (const [id, { pod }] of this.#known) if (!pods.has(pod)) this.#known.delete(id);
  }

  async #read(container: ObservedContainer): Promise<string> {
    const inContainer = container.annotations[PATH];
    const mount = inContainer ? container.mounts.find((m) => m.containerPath === absolutePath(inContainer)) : undefined;
    const fromFile = mount === undefined ? '' : await this.#fileTail(mount.hostPath);
    if (fromFile !== '') return fromFile;
    const wantsLog = container.annotations[POLICY] === 'FallbackToLogsOnError' && container.exitCode !== 0;
    if (!wantsLog || container.reason === 'ContainerCannotRun' || container.logPath === '') return '';
    return this.#logTail(container.logPath);
  }

  /** A pod that spoiled its own log must still come to an end. */
  async #logTail(path: string): Promise<string> {
    try {
      return await this.#deps.logTail(path);
    } catch (err) {
      return `Error on reading termination message from logs: ${messageOf(err)}`;
    }
  }

  async #fileTail(path: string): Promise<string> {
    try {
      return (await this.#deps.fileTail(path, MAX_FILE_BYTES))?.toString('utf8') ?? '';
    } catch (err) {
      return `Error on reading termination log ${path}: ${messageOf(err)}`;
    }
  }
}
