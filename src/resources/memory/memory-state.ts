// Whose memory is where: the content of `memory_manager_state`.
import type { MachineMemory, MemoryBlock } from './machine-memory.ts';

export type MemoryEntries = ReadonlyMap<string, ReadonlyMap<string, readonly MemoryBlock[]>>;

/** `pods`: memory given to a pod as a whole, from which its containers have theirs. */
export type MemoryAssignments = {
  readonly machine: MachineMemory;
  readonly entries: MemoryEntries;
  readonly pods: ReadonlyMap<string, readonly MemoryBlock[]>;
};

export class MemoryState implements MemoryAssignments {
  readonly #onChange: () => void;
  machine: MachineMemory;
  readonly #entries: Map<string, Map<string, readonly MemoryBlock[]>>;
  readonly #pods: Map<string, readonly MemoryBlock[]>;

  constructor(onChange: () => void, content?: MemoryAssignments) {
    this.#onChange = onChange;
    this.machine = content?.machine ?? new Map();
    this.#entries = new Map([...(content?.entries ?? [])].map(([uid, own]) => [uid, new Map(own)]));
    this.#pods = new Map(content?.pods);
  }

  get entries(): MemoryEntries {
    return this.#entries;
  }

  get pods(): ReadonlyMap<string, readonly MemoryBlock[]> {
    return this.#pods;
  }

  of(uid: string, container: string): readonly MemoryBlock[] | undefined {
    return this.#entries.get(uid)?.get(container);
  }

  setMachine(machine: MachineMemory): void {
    this.machine = machine;
    this.#onChange();
  }

  set(uid: string, container: string, blocks: readonly MemoryBlock[]): void {
    const own = this.#entries.get(uid) ?? new Map<string, readonly MemoryBlock[]>();
    own.set(container, blocks);
    this.#entries.set(uid, own);
    this.#onChange();
  }

  setPod(uid: string, blocks: readonly MemoryBlock[]): void {
    this.#pods.set(uid, blocks);
    this.#onChange();
  }

  delete(uid: string, container: string): void {
    const own = this.#entries.get(uid);
    own?.delete(container);
    if (own?.size === 0) this.#entries.delete(uid);
    this.#onChange();
  }

  deletePod(uid: string): void {
    this.#pods.delete(uid);
    this.#entries.delete(uid);
    this.#onChange();
  }
}
