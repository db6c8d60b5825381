// Memory that finished init containers of a pod leave to its next containers. Of one pod at a time: admission is serial.
import { isSidecar, uidOf, type Container, type Pod } from '../../core/pod.ts';
import type { MemoryBlock } from './machine-memory.ts';

const keyOf = (nodes: readonly number[], type: string): string => `${nodes.join()} ${type}`;

export class Reusable {
  #uid = '';
  #bytes = new Map<string, number>();

  on(uid: string, nodes: readonly number[], type: string): number {
    return uid === this.#uid ? (this.#bytes.get(keyOf(nodes, type)) ?? 0) : 0;
  }

  /** The container got these blocks: an init container lends them, any other uses up what was lent. */
  update(pod: Pod, container: Container, blocks: readonly MemoryBlock[]): void {
    const uid = uidOf(pod);
    if (uid !== this.#uid) this.#bytes = new Map();
    this.#uid = uid;
    const isInit = pod.spec.initContainers?.some((c) => c.name === container.name && !isSidecar(c)) === true;
    for (const { numaNodes, type, size } of blocks) {
      const key = keyOf(numaNodes, type);
      const before = this.#bytes.get(key) ?? 0;
      this.#bytes.set(key, isInit ? Math.max(before, size) : Math.max(0, before - size));
    }
  }
}
