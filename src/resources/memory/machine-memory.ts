// Memory and huge pages of every NUMA node: how much there is, how much is promised. Sizes in bytes.
import { formatQuantity, fromUnits } from '../../core/quantity.ts';
import type { NumaNode } from '../../host/topology/machine-topology.ts';

export type MemoryTable = {
  readonly total: number;
  readonly systemReserved: number;
  readonly allocatable: number;
  reserved: number;
  free: number;
};

export type NodeMemory = {
  assignments: number;
  /** By type: `memory`, `hugepages-2Mi`, …. */
  readonly tables: Map<string, MemoryTable>;
  /** The nodes this one gives memory together with; itself alone as long as it serves single-node requests. */
  cells: readonly number[];
};

export type MachineMemory = Map<number, NodeMemory>;

/** A part of the memory of some nodes that somebody holds. */
export type MemoryBlock = { readonly numaNodes: readonly number[]; readonly type: string; readonly size: number };

/** By node id, then by type. */
export type ReservedMemory = ReadonlyMap<number, ReadonlyMap<string, number>>;

const hugePagesName = (sizeKb: number): string => `hugepages-${formatQuantity(fromUnits(sizeKb * 1024, 'BinarySI'))}`;

/** The machine with nothing promised yet. */
export function freshMachine(nodes: readonly NumaNode[], reserved: ReservedMemory): MachineMemory {
  return new Map(
    nodes.map((node) => {
      const reservedOf = (type: string): number => reserved.get(node.id)?.get(type) ?? 0;
      const pools = node.hugePages.map(({ sizeKb, pages }): [string, number] => [
        hugePagesName(sizeKb),
        pages * sizeKb * 1024,
      ]);
      const inHugePages = pools.reduce((sum, [, bytes]) => sum + bytes, 0);
      const tables = new Map(
        pools.map(([type, bytes]) => [type, table(bytes, reservedOf(type), bytes - reservedOf(type))]),
      );
      const ofMemory = reservedOf('memory');
      tables.set('memory', table(node.memoryBytes, ofMemory, node.memoryBytes - ofMemory - inHugePages));
      return [node.id, { assignments: 0, tables, cells: [node.id] }];
    }),
  );
}

const table = (total: number, systemReserved: number, rest: number): MemoryTable => {
  const allocatable = Math.max(0, rest);
  return { total, systemReserved, allocatable, reserved: 0, free: allocatable };
};

/** Promises memory: nodes are used up one after the other, in the order given. */
export function charge(machine: MachineMemory, { numaNodes, type, size }: MemoryBlock): void {
  let missing = size;
  for (const id of numaNodes) {
    const node = machine.get(id);
    if (node === undefined) continue;
    node.assignments++;
    node.cells = numaNodes;
    const own = node.tables.get(type);
    const part = Math.min(own?.free ?? 0, missing);
    if (own === undefined || part === 0) continue;
    own.reserved += part;
    own.free -= part;
    missing -= part;
  }
}

/** Takes a promise back. */
export function giveBack(machine: MachineMemory, { numaNodes, type, size }: MemoryBlock): void {
  let left = size;
  for (const id of numaNodes) {
    const node = machine.get(id);
    if (node === undefined) continue;
    node.assignments--;
    if (node.assignments === 0) node.cells = [id];
    const own = node.tables.get(type);
    const part = Math.min(own?.reserved ?? 0, left);
    if (own === undefined || part === 0) continue;
    own.reserved -= part;
    own.free += part;
    left -= part;
  }
}

export const sameNodes = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && [...a].sort(byNumber).join() === [...b].sort(byNumber).join();

const byNumber = (a: number, b: number): number => a - b;

/** Whether two states of the machine mean the same: within a group of nodes only the sums count. */
export function sameMachine(a: MachineMemory, b: MachineMemory): boolean {
  if (a.size !== b.size) return false;
  for (const [id, one] of a) {
    const other = b.get(id);
    if (other === undefined || one.assignments !== other.assignments || !sameNodes(one.cells, other.cells))
      return false;
    if (one.tables.size !== other.tables.size) return false;
    for (const [type, own] of one.tables) {
      const theirs = other.tables.get(type);
      if (theirs === undefined || !sameSize(own, theirs)) return false;
      const sum = (machine: MachineMemory, key: 'free' | 'reserved'): number =>
        one.cells.reduce((all, cell) => all + (machine.get(cell)?.tables.get(type)?.[key] ?? 0), 0);
      if (sum(a, 'free') !== sum(b, 'free') || sum(a, 'reserved') !== sum(b, 'reserved')) return false;
    }
  }
  return true;
}

const sameSize = (a: MemoryTable, b: MemoryTable): boolean =>
  a.total === b.total && a.systemReserved === b.systemReserved && a.allocatable === b.allocatable;

/** Whether memory must not be taken from these nodes together: one of them serves requests of another kind. */
export const breaksGroups = (machine: MachineMemory, nodes: readonly number[]): boolean =>
  nodes.length > 1 &&
  nodes.some((id) => {
    const node = machine.get(id);
    if (node === undefined || node.assignments === 0) return false;
    return node.cells.length === 1 || !sameNodes(node.cells, nodes);
  });

export const freeOn = (machine: MachineMemory, nodes: readonly number[], type: string): number =>
  nodes.reduce((sum, id) => sum + (machine.get(id)?.tables.get(type)?.free ?? 0), 0);

export const allocatableOn = (machine: MachineMemory, nodes: readonly number[], type: string): number =>
  nodes.reduce((sum, id) => sum + (machine.get(id)?.tables.get(type)?.allocatable ?? 0), 0);
