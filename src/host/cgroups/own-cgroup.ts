// The cgroup this process was started in, for the figures of the kubelet itself.
import { kernelFiles } from '../kernel-files.ts';

export const readOwnCgroup = async (version: 1 | 2): Promise<string | undefined> =>
  ownCgroup(await kernelFiles.text('/proc/self/cgroup').catch(() => ''), version);

/** `text`: of /proc/self/cgroup. Undefined for the root, and where processor and memory are counted in different places. */
export function ownCgroup(text: string, version: 1 | 2): string | undefined {
  const paths = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.+)$/.exec(line) ?? [];
    if (path !== undefined) for (const name of (controllers ?? '').split(',')) paths.set(name, path);
  }
  const cpu = paths.get('cpu');
  const unified =
    version === 2 ? paths.get('') : cpu === paths.get('memory') ? (paths.get('name=systemd') ?? cpu) : '/';
  return unified === '/' ? undefined : unified;
}
