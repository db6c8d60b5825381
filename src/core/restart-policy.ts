// Whether a container that ended will be started again: its own rules first, then its policy, then the pod's.
import type { Container, Pod, RestartPolicy } from './pod.ts';

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

/** Restart policy Never, and no container that may be restarted on its own account. */
export const runsOnce = (pod: Pod): boolean =>
  pod.spec.restartPolicy === 'Never' &&
  pod.spec.containers.every(
    (c) => (c.restartPolicy === undefined || c.restartPolicy === 'Never') && (c.restartPolicyRules ?? []).length === 0,
  );
