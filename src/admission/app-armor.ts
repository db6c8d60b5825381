// Pods that ask for an AppArmor profile need a host that enforces it.
import { access, readFile } from 'node:fs/promises';
import type { AppArmorProfile, Pod } from '../core/pod.ts';
import type { Rejection } from './verdict.ts';

const ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';

/** `hostProblem`: what keeps the host from enforcing profiles, if anything. */
export function checkAppArmor(pod: Pod, hostProblem: string | undefined): Rejection | undefined {
  if ((pod.status?.phase ?? 'Pending') !== 'Pending' || !asksForProfile(pod)) return undefined;
  const problem = hostProblem ?? invalidProfile(pod);
  return problem === undefined ? undefined : { reason: 'AppArmor', message: `Cannot enforce AppArmor: ${problem}` };
}

const confines = (profile: AppArmorProfile | undefined): boolean =>
  profile !== undefined && profile.type !== 'Unconfined';

const annotatedProfiles = (pod: Pod): readonly string[] =>
  Object.entries(pod.metadata.annotations ?? {})
    .filter(([key]) => key.startsWith(ANNOTATION))
    .map(([, value]) => value);

function asksForProfile(pod: Pod): boolean {
  if (confines(pod.spec.securityContext?.appArmorProfile)) return true;
  const containers = [
    ...(pod.spec.initContainers ?? []),
    ...pod.spec.containers,
    ...(pod.spec.ephemeralContainers ?? []),
  ];
  if (containers.some((c) => confines(c.securityContext?.appArmorProfile))) return true;
  return annotatedProfiles(pod).some((profile) => profile !== '' && profile !== 'unconfined');
}

function invalidProfile(pod: Pod): string | undefined {
  const bad = annotatedProfiles(pod).find(
    (p) => p !== '' && p !== 'runtime/default' && p !== 'unconfined' && !/^localhost\/./.test(p),
  );
  return bad === undefined ? undefined : `invalid AppArmor profile name: ${JSON.stringify(bad)}`;
}

/** Looks at the kernel once, at start. `root` is `/` but for tests. */
export async function appArmorHostProblem(root = '/'): Promise<string | undefined> {
  try {
    await access(`${root}sys/kernel/security/apparmor`);
    const enabled = await readFile(`${root}sys/module/apparmor/parameters/enabled`, 'utf8');
    if (enabled.startsWith('Y')) return undefined;
  } catch {
    // Either file missing or unreadable means the same: the kernel enforces no profiles.
  }
  return 'AppArmor is not enabled on the host';
}
