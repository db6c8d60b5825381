// How long a call on files takes: tens of microseconds, milliseconds for what must reach the disk. The kernel's own files
// (/proc, /sys, cgroups) answer at once: nothing but numbers is read there, thousands of times an hour.
import { machine } from '../engine/machine.ts';

const SYNCS = new Set(['fsync', 'fdatasync']);
/** Mostly answered from memory; now and then the disk is asked. */
const READS = new Set([
  'open',
  'close',
  'lstat',
  'stat',
  'fstat',
  'readFile',
  'read',
  'readdir',
  'readlink',
  'access',
  'realpath',
  'statfs',
]);
const FROM_MEMORY = 0.9;
const KERNEL = /^\/(proc|sys)\/(?!self\/fd\/)/;

/** A disk that is slow multiplies the times. */
export const disk = { slowness: 1 };

/** Milliseconds. */
export function fileLatency(name: string, on?: unknown): number {
  if (typeof on === 'string' && KERNEL.test(on)) return 0;
  const { scheduler, files } = machine();
  if (typeof on === 'number' && files.isKernels(on)) return 0;
  const { latency } = scheduler;
  if (disk.slowness === 1 && READS.has(name) && latency.chance(FROM_MEMORY)) return 0;
  return SYNCS.has(name) ? disk.slowness * (0.5 + 4 * latency.next()) : disk.slowness * 0.02 * (1 + latency.next());
}
