// What our own Node object says about volumes that a controller attaches. A volume may be used once the same version of
// the object lists it as in use (so that nobody detaches it) and as attached. A version that lists it as in use proves nothing
// after a report without it: the server may have got that report, and the controller may detach the volume. Only the answer to
// a later report with the volume counts.
import type { Node } from '../core/node.ts';
import { KubeletError } from '../lib/errors.ts';

type Waiter = { readonly name: string; readonly resolve: (devicePath: string) => void };

export class Attachments {
  readonly #waiters = new Set<Waiter>();
  #node: Node | undefined;
  /** Names in the last report that was begun, whether or not it was answered. */
  #reported: readonly string[] = [];
  /** Names that the server has had as in use since the last report without them. */
  readonly #answered = new Set<string>();

  /** A report of the volumes in use begins. True: some of them wait for its answer. */
  reportBegins(names: readonly string[]): boolean {
    this.#reported = names;
    for (const name of this.#answered) if (!names.includes(name)) this.#answered.delete(name);
    return names.some((name) => !this.#answered.has(name));
  }

  /** The server's answer to the report that was begun last. */
  reportAnswered(node: Node): void {
    const inUse = node.status?.volumesInUse ?? [];
    for (const name of this.#reported) if (inUse.includes(name)) this.#answered.add(name);
    this.nodeSeen(node);
    this.#wake();
  }

  /** From the watch and from answers to our own reports, in any order; undefined while there is none. */
  nodeSeen(node: Node | undefined): void {
    if (node === undefined) return;
    const before = this.#node;
    if (before?.metadata.uid === node.metadata.uid && versionOf(before) > versionOf(node)) return;
    this.#node = node;
    this.#wake();
  }

  #wake(): void {
    for (const waiter of this.#waiters) {
      const path = this.#pathOf(waiter.name);
      if (path === undefined) continue;
      this.#waiters.delete(waiter);
      waiter.resolve(path);
    }
  }

  /** Whether a controller has it attached here; undefined while the node is not known. */
  isAttached(name: string): boolean | undefined {
    return this.#node === undefined ? undefined : this.#attached(name) !== undefined;
  }

  isUsable(name: string): boolean {
    return this.#pathOf(name) !== undefined;
  }

  /** The path it was attached at, which may be empty. Waits for as long as it takes. */
  whenAttached(name: string, signal: AbortSignal): Promise<string> {
    const path = this.#pathOf(name);
    if (path !== undefined) return Promise.resolve(path);
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiters.delete(waiter);
        reject(signal.reason instanceof Error ? signal.reason : new KubeletError('cancelled', 'cancelled'));
      };
      const waiter: Waiter = {
        name,
        resolve: (at) => {
          signal.removeEventListener('abort', onAbort);
          resolve(at);
        },
      };
      if (signal.aborted) return onAbort();
      this.#waiters.add(waiter);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  #pathOf(name: string): string | undefined {
    if (!this.#answered.has(name)) return undefined;
    return this.#node?.status?.volumesInUse?.includes(name) === true ? this.#attached(name) : undefined;
  }

  #attached(name: string): string | undefined {
    return this.#node?.status?.volumesAttached?.find((volume) => volume.name === name)?.devicePath;
  }
}

const versionOf = (node: Node | undefined): number => Number(node?.metadata.resourceVersion ?? 0);
