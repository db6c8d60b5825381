// The last known API pods on disk, and the services their environment is made of, so that a machine that boots without a
// control plane can bring them back. Opt-in.
// The file may hold secrets that people put into pod specs: it is readable by root only.
import { readFile } from 'node:fs/promises';
import type { Service } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';

export type PodCheckpointDeps = { clock: Clock; log: Logger };
export type PodCheckpointOptions = { path: string; nodeName: string };

type Content = {
  readonly version: 1;
  readonly node: string;
  readonly pods: readonly Pod[];
  readonly services?: readonly Service[];
};

/** Changes come in bursts; one write takes them all. */
const SETTLE_MS = 250;

export class PodCheckpoint implements Runnable {
  readonly name = 'pod-checkpoint';
  readonly #deps: PodCheckpointDeps;
  readonly #o: PodCheckpointOptions;
  /** Undefined until the API server has said what it has: a file is never overwritten with less than that. */
  #pods: readonly Pod[] | undefined;
  #services: readonly Service[] | undefined;
  #isDirty = false;
  #wake: () => void = () => undefined;

  constructor(deps: PodCheckpointDeps, options: PodCheckpointOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  /** Undefined when there is no usable file. */
  async load(): Promise<readonly Pod[] | undefined> {
    const { path, nodeName } = this.#o;
    try {
      const content = JSON.parse(await readFile(path, 'utf8')) as Content;
      if (content.version === 1 && content.node === nodeName && Array.isArray(content.pods)) {
        this.#services ??= content.services;
        return content.pods;
      }
      this.#deps.log.warn('pod checkpoint is of another node or version, ignoring it', { path });
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') this.#deps.log.warn('pod checkpoint is unreadable, ignoring it', { path, err });
    }
    return undefined;
  }

  /** The full set, as the API server has it. Written a moment later. */
  changed(pods: readonly Pod[]): void {
    this.#pods = pods;
    this.#isDirty = true;
    this.#wake();
  }

  servicesChanged(services: readonly Service[]): void {
    this.#services = services;
    this.#isDirty = this.#pods !== undefined;
    this.#wake();
  }

  /** As last known: from the API server, else from the file once that was read. */
  get services(): readonly Service[] | undefined {
    return this.#services;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (!this.#isDirty) await this.#nextChange(signal);
      await this.#deps.clock.sleep(SETTLE_MS, signal);
      await this.#write();
    }
  }

  async #write(): Promise<void> {
    if (!this.#isDirty || this.#pods === undefined) return;
    this.#isDirty = false;
    const content: Content = {
      version: 1,
      node: this.#o.nodeName,
      pods: this.#pods.map(slim),
      ...(this.#services === undefined ? {} : { services: this.#services.map(slim) }),
    };
    try {
      await writeFileAtomic(this.#o.path, JSON.stringify(content), 0o600);
    } catch (err) {
      this.#deps.log.error('could not write the pod checkpoint', { path: this.#o.path, err });
    }
  }

  #nextChange(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done);
        this.#wake = () => undefined;
        resolve();
      };
      this.#wake = done;
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

const slim = <T extends Pod | Service>(object: T): T => {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
};
