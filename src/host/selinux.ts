// Whether the kernel labels files and processes by SELinux. Enforcing or not makes no difference: labels have to be right.
import { access, readFile } from 'node:fs/promises';

/** `root` is `/` but for tests. */
export async function isSelinuxEnabled(root = '/'): Promise<boolean> {
  try {
    await access(`${root}sys/fs/selinux/enforce`);
    const label = (await readFile(`${root}proc/self/attr/current`, 'utf8')).replace(/\0$/, '').trim();
    // Without a policy everything is just `kernel`.
    return label !== '' && label !== 'kernel';
  } catch {
    return false;
  }
}
