// What tests may leave on a machine: cgroups, mounts and network links of theirs, and kernel settings a kubelet changes.
import { readdirSync, readFileSync } from 'node:fs';
import { KERNEL_SETTINGS } from '../src/host/process/host-checks.ts';

const CGROUPS = '/sys/fs/cgroup';
const OURS = /^(kubepods|kts)/;

const namesIn = (directory: string): string[] => {
  try {
    return readdirSync(directory);
  } catch {
    return []; // a file, or gone
  }
};
const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return ''; // not on this kernel
  }
};

/** Everything there is now, one line each. */
export function traces(): Set<string> {
  const hierarchies = ['', ...namesIn(CGROUPS)];
  const cgroups = hierarchies.flatMap((h) => namesIn(`${CGROUPS}/${h}`).filter((name) => OURS.test(name)));
  const mounts = read('/proc/self/mountinfo')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((point) => point.startsWith('/tmp/kts'));
  const links = namesIn('/sys/class/net').filter((name) => OURS.test(name));
  return new Set([
    ...cgroups.map((name) => `cgroup ${name}`),
    ...mounts.map((point) => `mount ${point}`),
    ...links.map((name) => `link ${name}`),
    ...Object.keys(KERNEL_SETTINGS).map((name) => `${name} = ${read(`/proc/sys/${name}`)}`),
  ]);
}
