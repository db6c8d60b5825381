// The whole of a pod. `validatePod` is what the API server checks on create.
import { dns1123Subdomain } from '../names.ts';
import type { Pod, PodSpec } from '../pod.ts';
import {
  checkEphemeralContainers,
  checkImage,
  checkInitContainers,
  checkMainContainers,
  type PodFacts,
} from './containers.ts';
import { checkFileKeyVolumes } from './env.ts';
import { Findings, type FieldError } from './field-error.ts';
import { checkLabels } from './labels.ts';
import { checkDns, checkHostAliases, checkHostnames, checkHostNetwork, checkHostUsers } from './network.ts';
import { checkObjectMeta, checkPodAnnotations } from './object-meta.ts';
import { readPod } from './pod-shape.ts';
import { checkOverhead, checkPodClaims, checkPodResources } from './resources.ts';
import { checkAffinity, checkGates, checkTolerations, checkTopologySpread } from './scheduling.ts';
import { checkPodSecurityContext } from './security.ts';
import { checkVolumes } from './volumes.ts';

export type PodValidationOptions = {
  /** Whether privileged containers may exist at all. */
  readonly allowPrivileged?: boolean;
};

const MAX_DEADLINE = 2 ** 31 - 1;

/** Every problem of a new pod, after defaulting. An empty list means it may run. */
export function validatePod(pod: Pod, options: PodValidationOptions = {}): readonly FieldError[] {
  const read = readPod(pod);
  if (read.object === undefined) return read.errors;
  const f = new Findings();
  checkPod(f, read.object, options);
  const { spec } = read.object;
  if ((spec.ephemeralContainers ?? []).length > 0) f.forbidden('spec.ephemeralContainers', 'cannot be set on create');
  if (spec.nodeName && (spec.schedulingGates ?? []).length > 0)
    f.forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared');
  return f.list;
}

/** What holds for a pod at any time, new or changed. The pod has been through `readPod`. */
export function checkPod(f: Findings, pod: Pod, options: PodValidationOptions): void {
  const { spec, metadata } = pod;
  checkObjectMeta(f, metadata);
  const names = [...spec.containers, ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])];
  checkPodAnnotations(f, metadata.annotations ?? {}, new Set(names.map((c) => c.name)), spec.nodeName);
  const claimNames = new Set((spec.resourceClaims ?? []).map((c) => c.name));
  const facts: PodFacts = {
    spec,
    volumes: checkVolumes(f, pod),
    claimNames,
    allowPrivileged: options.allowPrivileged ?? true,
  };
  checkPodClaims(f, spec, dns1123Subdomain);
  checkMainContainers(f, facts);
  checkInitContainers(f, facts);
  checkEphemeralContainers(f, facts);
  checkFileKeyVolumes(f, spec);
  checkPodResources(f, pod, claimNames);
  checkRules(f, spec);
  checkPlacement(f, spec);
  spec.containers.forEach((container, i) => checkImage(f, `spec.containers[${i}]`, container));
  spec.initContainers?.forEach((container, i) => checkImage(f, `spec.initContainers[${i}]`, container));
}

function checkRules(f: Findings, spec: PodSpec): void {
  f.oneOf('spec.restartPolicy', spec.restartPolicy, ['Always', 'OnFailure', 'Never']);
  f.oneOf('spec.dnsPolicy', spec.dnsPolicy, ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']);
  if (spec.terminationGracePeriodSeconds === undefined) f.required('spec.terminationGracePeriodSeconds');
  f.nonNegative('spec.terminationGracePeriodSeconds', spec.terminationGracePeriodSeconds);
  const deadline = spec.activeDeadlineSeconds;
  if (deadline !== undefined && (deadline < 1 || deadline > MAX_DEADLINE))
    f.invalid('spec.activeDeadlineSeconds', deadline, `must be between 1 and ${MAX_DEADLINE}, inclusive`);
  checkHostNetwork(f, spec);
  checkPodSecurityContext(f, spec.securityContext, spec);
  if (spec.shareProcessNamespace === true && spec.hostPID === true)
    f.invalid('spec.shareProcessNamespace', true, 'ShareProcessNamespace and HostPID cannot both be enabled');
  checkDns(f, spec);
  checkHostUsers(f, spec);
  checkHostnames(f, spec);
  checkHostAliases(f, spec.hostAliases ?? []);
  checkOverhead(f, spec.overhead);
  checkOs(f, spec);
  checkTokens(f, spec);
}

function checkPlacement(f: Findings, spec: PodSpec): void {
  checkLabels(f, 'spec.nodeSelector', spec.nodeSelector);
  if (spec.affinity !== undefined) checkAffinity(f, spec.affinity);
  checkGates(f, spec);
  checkTopologySpread(f, spec.topologySpreadConstraints ?? []);
  checkTolerations(f, 'spec.tolerations', spec.tolerations ?? []);
  for (const part of ['serviceAccountName', 'nodeName', 'priorityClassName'] as const) {
    const name = spec[part];
    if (name) f.reasons(`spec.${part}`, name, dns1123Subdomain(name));
  }
  if (spec.runtimeClassName !== undefined)
    f.reasons('spec.runtimeClassName', spec.runtimeClassName, dns1123Subdomain(spec.runtimeClassName));
  if (spec.preemptionPolicy !== undefined)
    f.oneOf('spec.preemptionPolicy', spec.preemptionPolicy, ['PreemptLowerPriority', 'Never']);
}

function checkOs(f: Findings, spec: PodSpec): void {
  if (spec.os === undefined) return;
  f.oneOf('spec.os.name', spec.os.name, ['linux', 'windows']);
  if (spec.os.name !== 'linux') return;
  const why = 'windows options cannot be set for a linux pod';
  if (spec.securityContext?.windowsOptions !== undefined) f.forbidden('spec.securityContext.windowsOptions', why);
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const)
    (spec[list] ?? []).forEach((container, i) => {
      if (container.securityContext?.windowsOptions !== undefined)
        f.forbidden(`spec.${list}[${i}].securityContext.windowsOptions`, why);
    });
}

/** A token is of a service account; a pod without one can have none. */
function checkTokens(f: Findings, spec: PodSpec): void {
  if (spec.serviceAccountName) return;
  (spec.volumes ?? []).forEach((volume, i) =>
    volume.projected?.sources?.forEach((source, j) => {
      if (source.serviceAccountToken !== undefined)
        f.forbidden(
          `spec.volumes[${i}].projected.sources[${j}].serviceAccountToken`,
          'must not be specified when serviceAccountName is not set',
        );
    }),
  );
}
