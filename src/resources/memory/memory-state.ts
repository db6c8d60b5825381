// Whose memory is where: the content of `memory_manager_state`. Pure but for the call when something changed.
import { Assignments, type Entries, type Given } from '../assignments.ts';
import type { MachineMemory, MemoryBlock } from './machine-memory.ts';

export type MemoryEntries = Entries<readonly MemoryBlock[]>;

export type MemoryAssignments = Given<readonly MemoryBlock[]> & { readonly machine: MachineMemory };

const NO_ASSIGNMENTS: MemoryAssignments = { machine: new Map(), entries: new Map(), pods: new Map() };

export class MemoryState extends Assignments<readonly MemoryBlock[]> implements MemoryAssignments {
  readonly #onChange: () => void;
  machine: MachineMemory;

  constructor(onChange: () => void, given: MemoryAssignments = NO_ASSIGNMENTS) {
    super(onChange, given);
    this.#onChange = onChange;
    this.machine = given.machine;
  }

  setMachine(machine: MachineMemory): void {
    this.machine = machine;
    this.#onChange();
  }
}
