// The label a volume is mounted with (`-o context=`), so that nobody has to label its files one by one. Only for volumes that
// one pod has to itself, unless the feature gate SELinuxMount says otherwise, and for drivers that said they can. Pure.
import { containersOf, type Pod, type SeLinuxOptions } from '../core/pod.ts';

export type SelinuxMountFacts = {
  readonly pod: Pod;
  /** Its name in the pod. */
  readonly volume: string;
  readonly accessModes: readonly string[];
  /** The volume's driver can mount with a label. */
  readonly supported: boolean;
  /** The feature gate SELinuxMount: whatever the access modes. */
  readonly anyMode: boolean;
  /** What the policy gives to files of containers; undefined on a host without SELinux. */
  readonly fileContext: string | undefined;
};

export type SelinuxMount = { readonly label: string } | { readonly problem: string } | undefined;

export function selinuxMountOf(facts: SelinuxMountFacts): SelinuxMount {
  const { pod, accessModes, supported, anyMode, fileContext } = facts;
  if (fileContext === undefined || !supported) return undefined;
  if (pod.spec.securityContext?.seLinuxChangePolicy === 'Recursive') return undefined;
  if (!anyMode && (accessModes.length !== 1 || accessModes[0] !== 'ReadWriteOncePod')) return undefined;
  const labels = labelsOf(pod, facts.volume, fileContext);
  if (labels.length > 1) return { problem: `multiple SELinux labels found: ${labels.join(',')}` };
  const [label] = labels;
  return label === undefined ? undefined : { label };
}

/** Of the containers that mount the volume and say what they run as. */
function labelsOf(pod: Pod, volume: string, fileContext: string): string[] {
  const labels = new Set<string>();
  for (const { container } of containersOf(pod)) {
    if (container.volumeMounts?.some((mount) => mount.name === volume) !== true) continue;
    const options = container.securityContext?.seLinuxOptions ?? pod.spec.securityContext?.seLinuxOptions;
    const label = options === undefined ? undefined : fileLabel(options, fileContext);
    if (label !== undefined) labels.add(label);
  }
  return [...labels].sort();
}

/** Without a level the runtime chooses one, which nobody can know before: then there is no label to mount with. */
function fileLabel({ user = '', level = '' }: SeLinuxOptions, fileContext: string): string | undefined {
  if (level === '') return undefined;
  const [usual = '', role = '', type = ''] = fileContext.split(':');
  return [user === '' ? usual : user, role, type, level].join(':');
}

/** In quotes because a level has commas. */
export const contextOption = (label: string): string => `context="${label}"`;

/** Whether the runtime is to label a volume's files one by one: not what cannot be written, and not what mounting labelled. */
export const relabelsFiles = (
  { readOnly, selinuxLabel }: { readonly readOnly: boolean; readonly selinuxLabel?: string },
  mountOptions: string | undefined,
): boolean => !readOnly && selinuxLabel === undefined && mountOptions?.split(',').includes('seclabel') === true;
