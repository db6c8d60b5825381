// Whether the kernel keeps a tmpfs out of swap when asked to. Tried, not looked up: some old kernels can, and inside a user
// namespace new ones refuse.
import { mkdtemp, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { mountSync, unmountSync } from '../libc.ts';

const UMOUNT_NOFOLLOW = 8;

export type Mounting = {
  readonly mount: (source: string, target: string, type: string, flags: number, options: string) => void;
  readonly unmount: (target: string, flags: number) => void;
};

/** Whether what pods keep in memory may be written to disk: swap is on, and a tmpfs cannot be kept out of it. */
export async function memoryMaySwap(
  { swapBytes }: { readonly swapBytes: number },
  dir: string,
  { mount, unmount }: Mounting = { mount: mountSync, unmount: unmountSync },
): Promise<boolean> {
  if (swapBytes === 0) return false;
  try {
    const place = await mkdtemp(join(dir, 'tmpfs-noswap-'));
    try {
      mount('tmpfs', place, 'tmpfs', 0, 'noswap');
      unmount(place, UMOUNT_NOFOLLOW);
      return false;
    } finally {
      await rmdir(place);
    }
  } catch {
    // What cannot be tried is not relied on.
    return true;
  }
}
