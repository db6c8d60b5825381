// The signals: what is measured, which resource it stands for and which pressure the node shows when it runs low.
import { fromUnits, type Quantity } from '../core/quantity.ts';
import type { NodeFigures, FsFigure, MemoryFigure } from './figures.ts';

export type Signal =
  | 'memory.available'
  | 'allocatableMemory.available'
  | 'nodefs.available'
  | 'nodefs.inodesFree'
  | 'imagefs.available'
  | 'imagefs.inodesFree'
  | 'containerfs.available'
  | 'containerfs.inodesFree'
  | 'pid.available';

export type Pressure = 'MemoryPressure' | 'DiskPressure' | 'PIDPressure';
export type StarvedResource = 'memory' | 'ephemeral-storage' | 'inodes' | 'pids';

type SignalFacts = { readonly resource: StarvedResource; readonly pressure: Pressure };
const MEMORY: SignalFacts = { resource: 'memory', pressure: 'MemoryPressure' };
const DISK: SignalFacts = { resource: 'ephemeral-storage', pressure: 'DiskPressure' };
const INODES: SignalFacts = { resource: 'inodes', pressure: 'DiskPressure' };

export const SIGNALS: Readonly<Record<Signal, SignalFacts>> = {
  'memory.available': MEMORY,
  'allocatableMemory.available': MEMORY,
  'nodefs.available': DISK,
  'nodefs.inodesFree': INODES,
  'imagefs.available': DISK,
  'imagefs.inodesFree': INODES,
  'containerfs.available': DISK,
  'containerfs.inodesFree': INODES,
  'pid.available': { resource: 'pids', pressure: 'PIDPressure' },
};

export const isSignal = (name: string): name is Signal => Object.hasOwn(SIGNALS, name);

export type Observation = { readonly available: Quantity; readonly capacity: bigint; readonly atMs: number };
export type Observations = ReadonlyMap<Signal, Observation>;

/** What the figures say about each signal; one that nobody measured is not there. */
export function observationsOf(node: NodeFigures): Observations {
  const seen = new Map<Signal, Observation>();
  const add = (
    signal: Signal,
    available: number | undefined,
    capacity: number | undefined,
    atMs: number,
    format: Quantity['format'] = 'BinarySI',
  ): void => {
    if (available === undefined || capacity === undefined) return;
    seen.set(signal, { available: fromUnits(available, format), capacity: BigInt(capacity), atMs });
  };
  const addMemory = (signal: Signal, memory: MemoryFigure | undefined): void => {
    if (memory?.availableBytes === undefined || memory.workingSetBytes === undefined) return;
    add(signal, memory.availableBytes, memory.availableBytes + memory.workingSetBytes, memory.time.ms);
  };
  const addDisk = (name: 'nodefs' | 'imagefs' | 'containerfs', fs: FsFigure | undefined): void => {
    if (fs === undefined) return;
    add(`${name}.available`, fs.availableBytes, fs.capacityBytes, fs.time.ms);
    add(`${name}.inodesFree`, fs.inodesFree, fs.inodes, fs.time.ms, 'DecimalSI');
  };
  addMemory('memory.available', node.memory);
  addMemory('allocatableMemory.available', node.systemContainers.find((c) => c.name === 'pods')?.memory);
  addDisk('nodefs', node.fs);
  addDisk('imagefs', node.runtime?.imageFs);
  addDisk('containerfs', node.runtime?.containerFs);
  if (node.rlimit !== undefined) {
    const { maxpid, curproc, time } = node.rlimit;
    add('pid.available', maxpid - curproc, maxpid, time.ms, 'DecimalSI');
  }
  return seen;
}
