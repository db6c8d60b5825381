// Who a container runs as and what it may do: the container's own wishes over the pod's.
import { isAbsolute, join } from 'node:path';
import {
  ProfileType,
  SupplementalGroupsPolicy,
  type LinuxContainerSecurityContext,
  type LinuxSandboxSecurityContext,
  type SecurityProfile,
} from '../cri/gen/cri.ts';
import {
  containersOf,
  podRef,
  type Container,
  type Pod,
  type SeccompProfile,
  type SecurityContext,
} from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Partially } from '../lib/proto/codec.ts';
import { namespaceOptions, type UserNamespaceMapping } from './namespaces.ts';

export type SecurityFacts = {
  readonly seccompDefault: boolean;
  /** `<root>/seccomp`. */
  readonly seccompDir: string;
  /** Paths of this machine to hide beside the usual ones (per-CPU thermal throttling counters). */
  readonly extraMaskedPaths: readonly string[];
};

/** The user an image names: a number, a name, or nobody in particular. */
export type ImageUser = { readonly uid?: number; readonly username?: string };

export const MASKED_PATHS = [
  ...[
    'asound',
    'acpi',
    'interrupts',
    'kcore',
    'keys',
    'latency_stats',
    'timer_list',
    'timer_stats',
    'sched_debug',
    'scsi',
  ].map((name) => `/proc/${name}`),
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
];
export const READONLY_PATHS = ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'].map((name) => `/proc/${name}`);

/** A container's fields where set, else the pod's. */
function effectiveSecurityContext(pod: Pod, container: Container): SecurityContext {
  const { runAsUser, runAsGroup, runAsNonRoot, seLinuxOptions, seccompProfile, appArmorProfile } =
    pod.spec.securityContext ?? {};
  const shared = { runAsUser, runAsGroup, runAsNonRoot, seLinuxOptions, seccompProfile, appArmorProfile };
  const set = Object.fromEntries(Object.entries(shared).filter(([, value]) => value !== undefined));
  return { ...set, ...container.securityContext };
}

/** Throws when a container that must not run as root would. */
export function verifyRunAsNonRoot(pod: Pod, container: Container, image: ImageUser): void {
  const context = effectiveSecurityContext(pod, container);
  if (context.runAsNonRoot !== true) return;
  const where = ` (pod: "${podRef(pod)}", container: ${container.name})`;
  if (context.runAsUser !== undefined) {
    if (context.runAsUser === 0) throw refusal(`container's runAsUser breaks non-root policy${where}`);
    return;
  }
  const { uid, username = '' } = image;
  if (uid === 0 || (uid === undefined && username === ''))
    throw refusal(`container has runAsNonRoot and image will run as root${where}`);
  if (uid === undefined)
    throw refusal(
      `container has runAsNonRoot and image has non-numeric user (${username}), cannot verify user is non-root${where}`,
    );
}

const refusal = (message: string): KubeletError => new KubeletError('invalid', message);

const groupsPolicy = (pod: Pod): { supplementalGroupsPolicy: SupplementalGroupsPolicy } => ({
  supplementalGroupsPolicy:
    pod.spec.securityContext?.supplementalGroupsPolicy === 'Strict'
      ? SupplementalGroupsPolicy.Strict
      : SupplementalGroupsPolicy.Merge,
});

export function sandboxSecurityContext(
  pod: Pod,
  extraGroups: readonly number[],
  userns: UserNamespaceMapping | undefined,
): Partially<LinuxSandboxSecurityContext> {
  const { runAsUser, runAsGroup, fsGroup, supplementalGroups, seLinuxOptions } = pod.spec.securityContext ?? {};
  return {
    privileged: [...containersOf(pod)].some((entry) => entry.container.securityContext?.privileged === true),
    seccomp: { profileType: ProfileType.RuntimeDefault },
    namespaceOptions: namespaceOptions(pod, userns),
    ...(runAsUser === undefined ? {} : { runAsUser: { value: runAsUser } }),
    ...(runAsGroup === undefined ? {} : { runAsGroup: { value: runAsGroup } }),
    supplementalGroups: [...(fsGroup === undefined ? [] : [fsGroup]), ...extraGroups, ...(supplementalGroups ?? [])],
    ...groupsPolicy(pod),
    ...(seLinuxOptions === undefined ? {} : { selinuxOptions: seLinuxOptions }),
  };
}

export type ContainerSecurityInput = {
  readonly image: ImageUser;
  readonly extraGroups: readonly number[];
  readonly userns: UserNamespaceMapping | undefined;
  readonly targetId?: string;
};

export function containerSecurityContext(
  pod: Pod,
  container: Container,
  input: ContainerSecurityInput,
  facts: SecurityFacts,
): Partially<LinuxContainerSecurityContext> {
  const context = effectiveSecurityContext(pod, container);
  const { fsGroup, supplementalGroups } = pod.spec.securityContext ?? {};
  const { add = [], drop = [] } = context.capabilities ?? {};
  const open = context.procMount === 'Unmasked';
  return {
    ...runAs(context, input.image),
    ...(context.runAsGroup === undefined ? {} : { runAsGroup: { value: context.runAsGroup } }),
    privileged: context.privileged === true,
    readonlyRootfs: context.readOnlyRootFilesystem === true,
    noNewPrivs: context.allowPrivilegeEscalation === false,
    ...(context.capabilities === undefined ? {} : { capabilities: { addCapabilities: add, dropCapabilities: drop } }),
    ...(context.seLinuxOptions === undefined ? {} : { selinuxOptions: context.seLinuxOptions }),
    supplementalGroups: [
      ...(fsGroup === undefined ? [] : [fsGroup]),
      ...(supplementalGroups ?? []),
      ...input.extraGroups,
    ],
    ...groupsPolicy(pod),
    namespaceOptions: namespaceOptions(pod, input.userns, input.targetId),
    maskedPaths: open ? [] : [...MASKED_PATHS, ...facts.extraMaskedPaths],
    readonlyPaths: open ? [] : READONLY_PATHS,
    seccomp: seccomp(context.seccompProfile, facts),
    ...appArmor(pod, container),
  };
}

function runAs(context: SecurityContext, image: ImageUser): Partially<LinuxContainerSecurityContext> {
  if (context.runAsUser !== undefined) return { runAsUser: { value: context.runAsUser } };
  if (image.uid !== undefined) return { runAsUser: { value: image.uid } };
  return image.username ? { runAsUsername: image.username } : { runAsUser: { value: 0 } };
}

function seccomp(profile: SeccompProfile | undefined, facts: SecurityFacts): Partially<SecurityProfile> {
  switch (profile?.type) {
    case undefined:
      return { profileType: facts.seccompDefault ? ProfileType.RuntimeDefault : ProfileType.Unconfined };
    case 'RuntimeDefault':
      return { profileType: ProfileType.RuntimeDefault };
    case 'Unconfined':
      return { profileType: ProfileType.Unconfined };
    case 'Localhost':
      return { profileType: ProfileType.Localhost, localhostRef: localSeccompProfile(profile, facts.seccompDir) };
    default:
      // A type this version does not know must not mean no profile at all.
      throw refusal(`seccompProfile type ${JSON.stringify(profile?.type)} is not supported`);
  }
}

/** A file below the kubelet's seccomp directory, whoever validated the pod (CVE-2023-2431). */
function localSeccompProfile({ localhostProfile = '' }: SeccompProfile, directory: string): string {
  if (localhostProfile === '') throw refusal('localhostProfile must be set if seccompProfile type is Localhost.');
  const path = join(directory, localhostProfile);
  if (isAbsolute(localhostProfile) || localhostProfile.split('/').includes('..') || !path.startsWith(`${directory}/`))
    throw refusal(`seccomp profile ${JSON.stringify(localhostProfile)} is outside of ${directory}`);
  return path;
}

const APPARMOR_ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';

/**
 * The container's own, from its field or from the annotation of older pods, before the pod's; runtimes are told in both
 * the new and the old way.
 */
function appArmor(pod: Pod, container: Container): Partially<LinuxContainerSecurityContext> {
  const profile =
    container.securityContext?.appArmorProfile ??
    legacyProfile(pod.metadata.annotations?.[`${APPARMOR_ANNOTATION}${container.name}`]) ??
    pod.spec.securityContext?.appArmorProfile;
  switch (profile?.type) {
    case 'RuntimeDefault':
      return { apparmor: { profileType: ProfileType.RuntimeDefault }, apparmorProfile: 'runtime/default' };
    case 'Unconfined':
      return { apparmor: { profileType: ProfileType.Unconfined }, apparmorProfile: 'unconfined' };
    case 'Localhost': {
      const name = profile?.localhostProfile ?? '';
      if (name === '') throw refusal('localhostProfile must be set if appArmorProfile type is Localhost.');
      return {
        apparmor: { profileType: ProfileType.Localhost, localhostRef: name },
        apparmorProfile: `localhost/${name}`,
      };
    }
    default:
      return {};
  }
}

function legacyProfile(text: string | undefined): SeccompProfile | undefined {
  if (text === 'runtime/default') return { type: 'RuntimeDefault' };
  if (text === 'unconfined') return { type: 'Unconfined' };
  if (text?.startsWith('localhost/') === true)
    return { type: 'Localhost', localhostProfile: text.slice('localhost/'.length) };
  return undefined;
}
