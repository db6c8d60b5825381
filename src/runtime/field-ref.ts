// Values a container may take from its own pod: fields and resources. Pure.
import {
  containersOf,
  namespaceOf,
  type Container,
  type ObjectFieldSelector,
  type Pod,
  type ResourceFieldSelector,
  type ResourceList,
} from '../core/pod.ts';
import { quantity, toMilli, type Quantity } from '../core/quantity.ts';
import { KubeletError } from '../lib/errors.ts';

export type PodFacts = { readonly podIps: readonly string[]; readonly hostIps: readonly string[] };

const SUBSCRIPT = /^metadata\.(labels|annotations)\['(.*)'\]$/s;

export function fieldValue(pod: Pod, selector: ObjectFieldSelector, facts: PodFacts): string {
  const path = selector.fieldPath;
  const subscript = SUBSCRIPT.exec(path);
  if (subscript !== null) {
    const source = subscript[1] === 'labels' ? pod.metadata.labels : pod.metadata.annotations;
    return source?.[subscript[2] ?? ''] ?? '';
  }
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name;
    case 'metadata.namespace':
      return namespaceOf(pod);
    case 'metadata.uid':
      return pod.metadata.uid ?? '';
    case 'spec.nodeName':
      return pod.spec.nodeName ?? '';
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName ?? '';
    case 'status.hostIP':
      return facts.hostIps[0] ?? '';
    case 'status.hostIPs':
      return facts.hostIps.join(',');
    case 'status.podIP':
      return facts.podIps[0] ?? '';
    case 'status.podIPs':
      return facts.podIps.join(',');
    default:
      throw new KubeletError('invalid', `unsupported fieldPath: ${path}`);
  }
}

/** A request or limit in units of the divisor, rounded up. Limits that are not set fall back to pod and node. */
export function resourceValue(
  pod: Pod,
  container: Container,
  selector: ResourceFieldSelector,
  allocatable: ResourceList,
): string {
  const target = containerNamed(pod, selector.containerName) ?? container;
  const [kind = '', ...rest] = selector.resource.split('.');
  const name = rest.join('.');
  const known = ['cpu', 'memory', 'ephemeral-storage'].includes(name) || name.startsWith('hugepages-');
  if ((kind !== 'limits' && kind !== 'requests') || !known)
    throw new KubeletError('invalid', `unsupported container resource : ${selector.resource}`);
  const value = kind === 'requests' ? target.resources?.requests?.[name] : limitOf(pod, target, name, allocatable);
  return divided(quantity(value), selector.divisor, name);
}

function containerNamed(pod: Pod, name: string | undefined): Container | undefined {
  if (name === undefined || name === '') return undefined;
  for (const entry of containersOf(pod)) if (entry.container.name === name) return entry.container;
  throw new KubeletError('invalid', `container ${name} not found`);
}

function limitOf(pod: Pod, target: Container, name: string, allocatable: ResourceList): string | undefined {
  const set = [target.resources?.limits?.[name], pod.spec.resources?.limits?.[name]].find(
    (text) => text !== undefined && quantity(text).nano !== 0n,
  );
  return set ?? (name.startsWith('hugepages-') ? target.resources?.limits?.[name] : allocatable[name]);
}

/** CPU is divided in thousandths, everything else in whole units. */
function divided(value: Quantity, divisorText: string | undefined, name: string): string {
  const given = divisorText === undefined ? undefined : quantity(divisorText);
  const divisor = given === undefined || given.nano === 0n ? quantity('1') : given;
  if (name === 'cpu') return String(Math.ceil(toMilli(value) / toMilli(divisor)));
  const [v, d] = [value.nano, divisor.nano];
  return String((v + d - 1n) / d);
}
