// Features a pod uses that this kubelet has switched off, or that this node did not declare.
import { isDeepStrictEqual } from 'node:util';
import { containersOf, isSidecar, type Container, type Pod } from '../core/pod.ts';
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

/** What a node must declare to follow the pod from what it was to what it is, sorted. */
function featuresOfUpdate(before: Pod, now: Pod): readonly string[] {
  const initOf = ({ spec }: Pod): ReadonlyMap<string, Container> =>
    new Map((spec.initContainers ?? []).filter((c) => !isSidecar(c)).map((c) => [c.name, c]));
  const [old, mine] = [initOf(before), initOf(now)];
  const features: string[] = [];
  if (!isDeepStrictEqual(before.spec.resources, now.spec.resources))
    features.push('InPlacePodLevelResourcesVerticalScaling');
  if ([...old].some(([name, { resources }]) => !isDeepStrictEqual(resources, mine.get(name)?.resources)))
    features.push('InPlacePodVerticalScalingInitContainers');
  return features;
}

/** What the node declares; undefined where it declares nothing and asks for nothing. */
type Declared = readonly string[] | undefined;

const complaint = (required: readonly string[], declared: Declared): string | undefined => {
  if (declared === undefined) return undefined;
  const missing = required.filter((feature) => !declared.includes(feature));
  return missing.length === 0 ? undefined : `Pod requires node features that are not available: ${missing.join(', ')}`;
};

export function checkDeclaredFeatures(pod: Pod, declared: Declared): Rejection | undefined {
  const message = complaint(requiredFeatures(pod), declared);
  return message === undefined ? undefined : { reason: 'PodFeatureUnsupported', message };
}

/** What to tell about an update this node cannot follow. */
export const updateProblem = (before: Pod, now: Pod, declared: Declared): string | undefined =>
  complaint(featuresOfUpdate(before, now), declared);
