// Whether the kernel limits the swap of single cgroups here: the file for it is there, whether or not there is swap now.
import { join } from 'node:path';
import { kernelFiles } from '../kernel-files.ts';

const MOUNT = 'sys/fs/cgroup';

/** `root` is where /proc and /sys are found: `/` but for tests. */
export async function limitsSwap(version: 1 | 2, root = '/'): Promise<boolean> {
  const file = version === 1 ? 'memory/memory.memsw.limit_in_bytes' : await ownFile(root);
  return kernelFiles.text(join(root, MOUNT, file)).then(
    () => true,
    () => false,
  );
}

/** The root of the tree has no limits: our own cgroup has, where the memory controller is on. */
async function ownFile(root: string): Promise<string> {
  const text = await kernelFiles.text(join(root, 'proc/self/cgroup'));
  return join(/^0::(.*)$/m.exec(text)?.[1] ?? '/', 'memory.swap.max');
}
