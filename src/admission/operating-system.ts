// Pods made for another operating system, or that need group handling the runtime lacks.
import type { Node } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import type { Rejection } from './verdict.ts';

export function checkOperatingSystem(pod: Pod): Rejection | undefined {
  const label = pod.metadata.labels?.['kubernetes.io/os'];
  if (label !== undefined && label !== 'linux')
    return {
      reason: 'PodOSSelectorNodeLabelDoesNotMatch',
      message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    };
  if (pod.spec.os !== undefined && pod.spec.os.name !== 'linux')
    return { reason: 'PodOSNotSupported', message: "Failed to admit pod as the OS field doesn't match node OS" };
  return undefined;
}

export const checkSupplementalGroups = (pod: Pod, node: Node): Rejection | undefined =>
  pod.spec.securityContext?.supplementalGroupsPolicy === 'Strict' &&
  node.status?.features?.supplementalGroupsPolicy !== true
    ? {
        reason: 'SupplementalGroupsPolicyNotSupported',
        message: 'SupplementalGroupsPolicy=Strict is not supported in this node',
      }
    : undefined;
