// What this node granted a pod, against what the pod's spec asks for now. Pure. Only cpu and memory can be resized; all
// other resources are as the spec says.
import type { Container, Pod, ResourceList, ResourceRequirements } from '../core/pod.ts';
import { RESIZABLE_RESOURCES, withResources } from '../core/pod-resources.ts';
import { compareQuantities, quantity } from '../core/quantity.ts';

/** By container name; `pod` for the pod as a whole. */
export type Allocation = {
  readonly containers: Readonly<Record<string, ResourceRequirements>>;
  readonly pod?: ResourceRequirements;
};

const allContainers = (pod: Pod): readonly Container[] => [...(pod.spec.initContainers ?? []), ...pod.spec.containers];

/** Everything the spec asks for. */
export const allocationOf = (pod: Pod): Allocation => ({
  containers: Object.fromEntries(allContainers(pod).map((c) => [c.name, granted(c.resources)])),
  ...(pod.spec.resources !== undefined && { pod: granted(pod.spec.resources) }),
});

/** With its claims, although nobody resizes them: the Go kubelet puts all of it in the place of the spec's. */
const granted = ({ limits, requests, claims }: ResourceRequirements = {}): ResourceRequirements => ({
  ...(limits !== undefined && { limits }),
  ...(requests !== undefined && { requests }),
  ...(claims !== undefined && { claims }),
});

/** Whether the spec asks for other cpu or memory than was granted. */
export function differs(pod: Pod, granted: Allocation | undefined): boolean {
  if (granted === undefined) return false;
  if (changed(pod.spec.resources, granted.pod)) return true;
  return allContainers(pod).some(
    (c) => c.name in granted.containers && changed(c.resources, granted.containers[c.name]),
  );
}

const changed = (wanted: ResourceRequirements = {}, granted: ResourceRequirements = {}): boolean =>
  RESIZABLE_RESOURCES.some(
    (name) =>
      !same(wanted.requests?.[name], granted.requests?.[name]) || !same(wanted.limits?.[name], granted.limits?.[name]),
  );

const same = (a: string | undefined, b: string | undefined): boolean =>
  a === b || ((a === undefined) === (b === undefined) && compareQuantities(quantity(a), quantity(b)) === 0);

/** The pod with what was granted in place of what it asks for: what is run, counted and shown. */
export function withAllocation(pod: Pod, granted: Allocation | undefined): Pod {
  if (granted === undefined || !differs(pod, granted)) return pod;
  const granting = (c: Container): ResourceRequirements | undefined => {
    const own = granted.containers[c.name];
    return own === undefined ? c.resources : replaced(c.resources, own);
  };
  const podLevel = granted.pod === undefined ? undefined : replaced(pod.spec.resources, granted.pod);
  return withResources(pod, granting, podLevel);
}

const replaced = (wanted: ResourceRequirements = {}, own: ResourceRequirements): ResourceRequirements => ({
  ...wanted,
  ...listField('requests', wanted.requests, own.requests),
  ...listField('limits', wanted.limits, own.limits),
});

function listField(
  field: 'requests' | 'limits',
  wanted: ResourceList = {},
  own: ResourceList = {},
): ResourceRequirements {
  const { cpu: _cpu, memory: _memory, ...rest } = wanted;
  const list: Record<string, string> = { ...rest };
  for (const name of RESIZABLE_RESOURCES) if (own[name] !== undefined) list[name] = own[name];
  return { [field]: list };
}
