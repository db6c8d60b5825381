// Lets go of what the start alone needed of the program file: most of Node's code and tables are read once, to bring V8
// and the modules up. The pages stay in the page cache and come back when touched; mapped, the kernel would keep them
// longer than the rest of the cache, and they count as the kubelet's memory.
import { readFile } from 'node:fs/promises';
import { dropPages } from '../libc.ts';

export type Mapping = { readonly start: bigint; readonly length: bigint; readonly path: string };

/**
 * Mappings of files, not writable, in which nothing was ever written. Relocated tables were written to before they were
 * locked: those pages are the process's own, in memory or swapped out, and the file does not have them. Pages that are
 * merely dirty are the file's: it was installed a moment ago and is not on its disk yet.
 */
export function cleanFileMappings(smaps: string): Mapping[] {
  const found: Mapping[] = [];
  let current: Mapping | undefined;
  for (const line of smaps.split('\n')) {
    const head = /^([0-9a-f]+)-([0-9a-f]+) (r-[x-]p) \S+ \S+ ([1-9]\d*) +(\/.*)$/.exec(line);
    if (head !== null) {
      const [start, end] = [BigInt(`0x${head[1]}`), BigInt(`0x${head[2]}`)];
      current = { start, length: end - start, path: head[5] ?? '' };
    } else if (/^[0-9a-f]+-/.test(line)) current = undefined;
    else if (/^(Anonymous|Swap): +[1-9]/.test(line)) current = undefined;
    else if (current !== undefined && line.startsWith('VmFlags:')) {
      found.push(current);
      current = undefined;
    }
  }
  return found;
}

/** The program's own file only: libraries are small, and used all the time. */
export async function dropCodePages(): Promise<void> {
  const smaps = await readFile('/proc/self/smaps', 'utf8');
  for (const { start, length, path } of cleanFileMappings(smaps))
    if (path === process.execPath) dropPages(start, length);
}
