// Features a pod uses that this kubelet has switched off, or that this node did not declare.
import { containersOf, type Pod } from '../core/pod.ts';
import type { Rejection } from './verdict.ts';

export const checkPodLevelResources = (pod: Pod, gateOn: boolean): Rejection | undefined =>
  !gateOn && pod.spec.resources !== undefined && Object.keys(pod.spec.resources).length > 0
    ? { reason: 'PodLevelResourcesNotSupported', message: 'PodLevelResources feature gate is disabled' }
    : undefined;

/** What a node must declare (node.status.declaredFeatures) to run this pod, sorted. */
function requiredFeatures(pod: Pod): readonly string[] {
  const features: string[] = [];
  for (const { container } of containersOf(pod))
    if (container.restartPolicyRules?.some((rule) => rule.action === 'RestartAllContainers') === true)
      features.push('RestartAllContainersOnContainerExits');
  if (pod.spec.hostNetwork === true && pod.spec.hostUsers === false) features.push('UserNamespacesHostNetworkSupport');
  return [...new Set(features)].sort();
}

export function checkDeclaredFeatures(pod: Pod, declared: readonly string[]): Rejection | undefined {
  const missing = requiredFeatures(pod).filter((feature) => !declared.includes(feature));
  return missing.length === 0
    ? undefined
    : {
        reason: 'PodFeatureUnsupported',
        message: `Pod requires node features that are not available: ${missing.join(', ')}`,
      };
}
