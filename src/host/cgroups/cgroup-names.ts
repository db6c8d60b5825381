// Where cgroups live, in the form each driver wants. A name is a list of plain parts below the kernel's root; systemd
// repeats all parents in the name of each slice.
import type { PodUid } from '../../core/ids.ts';
import { podUid } from '../../core/ids.ts';
import type { QosClass } from '../../core/pod.ts';

export type CgroupDriver = 'cgroupfs' | 'systemd';
export type CgroupName = readonly string[];

const QOS_PART: Record<QosClass, readonly string[]> = {
  Guaranteed: [],
  Burstable: ['burstable'],
  BestEffort: ['besteffort'],
};

/** `/a/b` or, for systemd, `a-b.slice` in either its short or its full form, as parts. */
export function parseCgroupName(text: string, driver: CgroupDriver): CgroupName {
  if (driver === 'cgroupfs') return text.split('/').filter(Boolean);
  const last = text.split('/').findLast(Boolean) ?? '';
  if (last === '' || last === '-.slice') return [];
  return last
    .replace(/\.slice$/, '')
    .split('-')
    .map((part) => part.replaceAll('_', '-'));
}

/** `cgroupRoot`: a path of plain names with either driver, also of names with a dash; for systemd the name of a slice, too. */
export const parseCgroupRoot = (text: string, driver: CgroupDriver): CgroupName =>
  parseCgroupName(text, text.endsWith('.slice') ? driver : 'cgroupfs');

export const kubepodsName = (root: CgroupName): CgroupName => [...root, 'kubepods'];
export const qosName = (root: CgroupName, qos: QosClass): CgroupName => [...kubepodsName(root), ...QOS_PART[qos]];
export const podName = (root: CgroupName, qos: QosClass, uid: PodUid): CgroupName => [
  ...qosName(root, qos),
  `pod${uid}`,
];

/** The path below each hierarchy's mount point. */
export function cgroupPath(name: CgroupName, driver: CgroupDriver): string {
  if (driver === 'cgroupfs') return `/${name.join('/')}`;
  const escaped = name.map((part) => part.replaceAll('-', '_'));
  return `/${escaped.map((_, i) => `${escaped.slice(0, i + 1).join('-')}.slice`).join('/')}`;
}

const POD = /^pod([0-9A-Za-z][0-9A-Za-z-]*)$/;

/** The pod a cgroup directory below kubepods or a QoS cgroup belongs to. */
export function podUidOfDir(dir: string, driver: CgroupDriver): PodUid | undefined {
  const part = driver === 'cgroupfs' ? dir : dir.endsWith('.slice') ? parseCgroupName(dir, driver).at(-1) : undefined;
  const uid = POD.exec(part ?? '')?.[1];
  return uid === undefined ? undefined : podUid(uid);
}
