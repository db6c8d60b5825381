// What our own Node object says about volumes that a controller attaches. A volume may be used once the same version of
// the object lists it as in use (so that nobody detaches it) and as attached.
import type { Node } from '../core/node.ts';
import { KubeletError } from '../lib/errors.ts';

type Waiter = { readonly name: string; readonly resolve: (devicePath: string) => void };

export class Attachments {
  readonly #waiters = new Set<Waiter>();
  #node: Node | undefined;

  /** From the watch and from answers to our own reports, in any order; undefined while there is none. */
  nodeSeen(node: Node | undefined): void {
    if (node === undefined) return;
    const before = this.#node;
    if (before?.metadata.uid === node.metadata.uid && versionOf(before) > versionOf(node)) return;
    this.#node = node;
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
    return this.#node?.status?.volumesInUse?.includes(name) === true ? this.#attached(name) : undefined;
  }

  #attached(name: string): string | undefined {
    return this.#node?.status?.volumesAttached?.find((volume) => volume.name === name)?.devicePath;
  }
}

const versionOf = (node: Node | undefined): number => Number(node?.metadata.resourceVersion ?? 0);
