// Whether a container that ended will be started again: its own rules first, then its policy, then the pod's.
import type { Container, Pod, PodStatus, RestartPolicy } from './pod.ts';
import { newestOf, type PodSnapshot } from './snapshot.ts';

export function effectivePolicy(container: Container, pod: Pod): RestartPolicy {
  return container.restartPolicy ?? pod.spec.restartPolicy ?? 'Always';
}

/** The action of the first restart rule that matches the exit code. */
export function matchingRule(container: Container, exitCode: number): 'Restart' | 'RestartAllContainers' | undefined {
  for (const rule of container.restartPolicyRules ?? []) {
    const values = rule.exitCodes?.values ?? [];
    const hit = rule.exitCodes !== undefined && (rule.exitCodes.operator === 'In') === values.includes(exitCode);
    if (hit) return rule.action;
  }
  return undefined;
}

export function restartsAfterExit(container: Container, pod: Pod, exitCode: number): boolean {
  if (matchingRule(container, exitCode) !== undefined) return true;
  const policy = effectivePolicy(container, pod);
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

export const ALL_RESTARTING = 'AllContainersRestarting';
/** Why containers that such a restart removed are not there. */
export const RESTARTING_ALL = 'RestartingAllContainers';

const initAndMain = ({ spec }: Pod): readonly Container[] => [...(spec.initContainers ?? []), ...spec.containers];

/** Some rule of this pod may make all its containers start over. */
export const mayRestartAll = (pod: Pod): boolean =>
  initAndMain(pod).some((c) => (c.restartPolicyRules ?? []).some((rule) => rule.action === 'RestartAllContainers'));

export const isRestartingAll = (status: PodStatus): boolean =>
  (status.conditions ?? []).some((c) => c.type === ALL_RESTARTING && c.status === 'True');

/** All containers are to start over: one ended so that a rule asks for it, or it was under way when last said. */
export function mustRestartAll(pod: Pod, snapshot: PodSnapshot, last: PodStatus): boolean {
  if (!mayRestartAll(pod)) return false;
  if (isRestartingAll(last)) return true;
  return initAndMain(pod).some((c) => {
    const seen = newestOf(snapshot, c.name);
    return seen?.state === 'exited' && matchingRule(c, seen.exitCode) === 'RestartAllContainers';
  });
}

/** Restart policy Never, and no container that may be restarted on its own account. */
export const runsOnce = (pod: Pod): boolean =>
  pod.spec.restartPolicy === 'Never' &&
  pod.spec.containers.every(
    (c) => (c.restartPolicy === undefined || c.restartPolicy === 'Never') && (c.restartPolicyRules ?? []).length === 0,
  );
