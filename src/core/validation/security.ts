// Security contexts, sysctls, seccomp and AppArmor.
import { sysctlName, userOrGroupId } from '../names.ts';
import type { PodSecurityContext, PodSpec, SeccompProfile, SecurityContext } from '../pod.ts';
import { item, type Findings } from './field-error.ts';
import { checkDescending } from './paths.ts';

const PROFILE_TYPES = ['Localhost', 'RuntimeDefault', 'Unconfined'];
const MAX_APPARMOR_PROFILE = 4095;

export function checkSecurityContext(
  f: Findings,
  field: string,
  context: SecurityContext | undefined,
  hostUsers: boolean,
  allowPrivileged: boolean,
): void {
  if (context === undefined) return;
  if (context.privileged === true && !allowPrivileged)
    f.forbidden(`${field}.privileged`, 'disallowed by cluster policy');
  checkIds(f, field, context);
  if (context.procMount !== undefined) {
    if (context.procMount !== 'Default' && context.procMount !== 'Unmasked')
      f.notSupported(`${field}.procMount`, context.procMount, ['Default', 'Unmasked']);
    else if (hostUsers && context.procMount === 'Unmasked')
      f.invalid(`${field}.procMount`, context.procMount, '`hostUsers` must be false to use `Unmasked`');
  }
  checkSeccomp(f, `${field}.seccompProfile`, context.seccompProfile);
  checkAppArmor(f, `${field}.appArmorProfile`, context.appArmorProfile);
  if (context.allowPrivilegeEscalation === false) {
    if (context.privileged === true)
      f.invalid(field, context, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true');
    if (context.capabilities?.add?.includes('CAP_SYS_ADMIN') === true)
      f.invalid(field, context, 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN');
  }
  for (const list of ['add', 'drop'] as const)
    context.capabilities?.[list]?.forEach((name, i) => {
      if (!/^[A-Za-z0-9_]+$/.test(name))
        f.invalid(item(`${field}.capabilities.${list}`, i), name, 'must be the name of a capability');
    });
}

export function checkPodSecurityContext(f: Findings, context: PodSecurityContext | undefined, spec: PodSpec): void {
  const field = 'spec.securityContext';
  if (context === undefined) return;
  checkIds(f, field, context);
  if (context.fsGroup !== undefined) f.reasons(`${field}.fsGroup`, context.fsGroup, userOrGroupId(context.fsGroup));
  context.supplementalGroups?.forEach((gid, i) =>
    f.reasons(item(`${field}.supplementalGroups`, i), gid, userOrGroupId(gid)),
  );
  checkSysctls(f, `${field}.sysctls`, context.sysctls ?? [], spec);
  const choice = (
    part: 'fsGroupChangePolicy' | 'supplementalGroupsPolicy' | 'seLinuxChangePolicy',
    allowed: string[],
  ) => {
    const value = context[part];
    if (value !== undefined && !allowed.includes(value)) f.notSupported(`${field}.${part}`, value, allowed);
  };
  choice('fsGroupChangePolicy', ['Always', 'OnRootMismatch']);
  choice('supplementalGroupsPolicy', ['Merge', 'Strict']);
  choice('seLinuxChangePolicy', ['MountOption', 'Recursive']);
  checkSeccomp(f, `${field}.seccompProfile`, context.seccompProfile);
  checkAppArmor(f, `${field}.appArmorProfile`, context.appArmorProfile);
}

function checkIds(f: Findings, field: string, context: Pick<SecurityContext, 'runAsUser' | 'runAsGroup'>): void {
  for (const part of ['runAsUser', 'runAsGroup'] as const) {
    const id = context[part];
    if (id !== undefined) f.reasons(`${field}.${part}`, id, userOrGroupId(id));
  }
}

/**
 * Runtimes have split values at `+` and `=` and so set kernel-wide parameters. No honest value has either; tabs are what the
 * kernel itself puts between numbers.
 */
const UNSAFE_SYSCTL_VALUE = /[+=]|[^\P{Cc}\t]/u;

function checkSysctls(
  f: Findings,
  field: string,
  sysctls: NonNullable<PodSecurityContext['sysctls']>,
  spec: PodSpec,
): void {
  const seen = new Set<string>();
  sysctls.forEach(({ name, value }, i) => {
    const at = item(field, i);
    f.name(`${at}.name`, name, sysctlName);
    if (!name) return;
    if (seen.has(name)) f.duplicate(`${at}.name`, name);
    seen.add(name);
    const namespace = sysctlNamespace(name);
    if (spec.hostNetwork === true && namespace === 'net')
      f.invalid(`${at}.name`, name, "may not be specified when 'hostNetwork' is true");
    if (spec.hostIPC === true && namespace === 'ipc')
      f.invalid(`${at}.name`, name, "may not be specified when 'hostIPC' is true");
    if (value !== undefined && UNSAFE_SYSCTL_VALUE.test(value))
      f.invalid(`${at}.value`, value, "must not contain '+', '=' or control characters but tabs");
  });
}

/** Names come with dots or slashes; the first separator says which. */
function sysctlNamespace(name: string): 'net' | 'ipc' | undefined {
  const separator = /[./]/.exec(name)?.[0];
  const dotted = separator === '/' ? name.replace(/[./]/g, (c) => (c === '/' ? '.' : '/')) : name;
  if (dotted.startsWith('net.')) return 'net';
  return /^(?:kernel\.(?:shm|msg)|kernel\.sem$|fs\.mqueue\.)/.test(dotted) ? 'ipc' : undefined;
}

function checkSeccomp(f: Findings, field: string, profile: SeccompProfile | undefined): void {
  if (profile === undefined) return;
  if (!profile.type) f.required(`${field}.type`, 'type is required when seccompProfile is set');
  else if (!PROFILE_TYPES.includes(profile.type)) f.notSupported(`${field}.type`, profile.type, PROFILE_TYPES);
  const at = `${field}.localhostProfile`;
  if (profile.type !== 'Localhost') {
    if (profile.localhostProfile !== undefined)
      f.invalid(at, profile.localhostProfile, 'can only be set when seccomp type is Localhost');
  } else if (!profile.localhostProfile) {
    // An empty name once meant no confinement at all.
    f.required(at, 'must be set when seccomp type is Localhost');
  } else {
    checkDescending(f, at, profile.localhostProfile);
  }
}

function checkAppArmor(f: Findings, field: string, profile: SeccompProfile | undefined): void {
  if (profile === undefined) return;
  const at = `${field}.localhostProfile`;
  const name = profile.localhostProfile;
  if (!profile.type) return f.required(`${field}.type`, 'type is required when appArmorProfile is set');
  if (!PROFILE_TYPES.includes(profile.type)) return f.notSupported(`${field}.type`, profile.type, PROFILE_TYPES);
  if (profile.type !== 'Localhost') {
    if (name !== undefined) f.invalid(at, name, 'can only be set when AppArmor type is Localhost');
    return;
  }
  if (name === undefined || name === '') return f.required(at, 'must be set when AppArmor type is Localhost');
  if (name.trim() !== name) f.invalid(at, name, 'must not be padded with whitespace');
  if (Buffer.byteLength(name) > MAX_APPARMOR_PROFILE) f.tooLong(at, MAX_APPARMOR_PROFILE);
}
