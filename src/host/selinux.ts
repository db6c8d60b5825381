// Whether the kernel labels files and processes by SELinux. Enforcing or not makes no difference: labels have to be right.
import { access, readFile } from 'node:fs/promises';
import type { Logger } from '../lib/logger.ts';
import { fileLabel, setFileLabel } from './libc.ts';

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

/**
 * The label that the host's policy gives to files of containers, `system_u:object_r:container_file_t:s0`; undefined without
 * SELinux, or with a policy that knows nothing of containers.
 */
export async function containerFileContext(root = '/'): Promise<string | undefined> {
  if (!(await isSelinuxEnabled(root))) return undefined;
  const valueIn = async (path: string, key: string): Promise<string | undefined> =>
    new RegExp(`^\\s*${key}\\s*=\\s*"?([^"\\s]+)"?`, 'm').exec(await readFile(path, 'utf8').catch(() => ''))?.[1];
  const policy = (await valueIn(`${root}etc/selinux/config`, 'SELINUXTYPE')) ?? 'targeted';
  return valueIn(`${root}etc/selinux/${policy}/contexts/lxc_contexts`, 'file');
}

const PLUGIN_LABEL = 'system_u:object_r:container_file_t:s0';

/** Lets plugins in containers without privileges reach the sockets in a directory. Nothing to do without SELinux. */
export async function labelForPlugins(path: string, log: Pick<Logger, 'warn'>, root = '/'): Promise<void> {
  if (!(await isSelinuxEnabled(root))) return;
  try {
    if (fileLabel(path) !== PLUGIN_LABEL) setFileLabel(path, PLUGIN_LABEL);
  } catch (err) {
    log.warn('plugins without privileges may not work, their directory could not be labelled', { path, err });
  }
}
