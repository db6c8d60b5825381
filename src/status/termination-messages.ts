// What a container left behind when it ended: the tail of its termination message file, or of its log. Read once per
// container, in the background of the worker, and remembered until the container or its pod is gone.
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { ContainerId, PodUid } from '../core/ids.ts';
import type { ObservedContainer, PodSnapshot } from '../core/snapshot.ts';
import { errnoOf, messageOf } from '../lib/errors.ts';

const PATH = 'io.kubernetes.container.terminationMessagePath';
const POLICY = 'io.kubernetes.container.terminationMessagePolicy';
const MAX_FILE_BYTES = 4096;
const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** Reads the end of a container log, without the runtime's line prefixes. */
export type LogTail = (path: string) => Promise<string>;

export class TerminationMessages {
  readonly #logTail: LogTail;
  readonly #known = new Map<ContainerId, { readonly pod: PodUid; readonly message: string }>();

  constructor(logTail: LogTail) {
    this.#logTail = logTail;
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
    const mount = container.mounts.find((m) => m.containerPath === inContainer);
    const fromFile = mount === undefined ? '' : await tailOf(mount.hostPath);
    if (fromFile !== '') return fromFile;
    const wantsLog = container.annotations[POLICY] === 'FallbackToLogsOnError' && container.exitCode !== 0;
    if (!wantsLog || container.reason === 'ContainerCannotRun' || container.logPath === '') return '';
    return this.#logTail(container.logPath);
  }
}

/** A pod may have mounted anything in this place: a pipe would make the open wait, a device or link mean another file. */
async function tailOf(path: string): Promise<string> {
  try {
    const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const stat = await file.stat();
      if (!stat.isFile()) return '';
      const length = Math.min(stat.size, MAX_FILE_BYTES);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, stat.size - length);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (err) {
    const errno = errnoOf(err);
    if (errno === 'ENOENT' || errno === 'ELOOP') return '';
    return `Error on reading termination log ${path}: ${messageOf(err)}`;
  }
}
