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

/** A disk that is slow multiplies the times; a busy kernel takes its time for its own files. */
export const disk = { slowness: 1, kernelMs: 0 };

/** Milliseconds. */
export function fileLatency(name: string, on?: unknown): number {
  const { scheduler, files, onFileCall } = machine();
  if (typeof on === 'string') for (const told of onFileCall) told(on);
  const isKernels = typeof on === 'string' ? KERNEL.test(on) : typeof on === 'number' && files.isKernels(on);
  if (isKernels) return disk.kernelMs;
  const { latency } = scheduler;
  if (disk.slowness === 1 && READS.has(name) && latency.chance(FROM_MEMORY)) return 0;
  return SYNCS.has(name) ? disk.slowness * (0.5 + 4 * latency.next()) : disk.slowness * 0.02 * (1 + latency.next());
}
