// Which pods are behind a service, and on which ports. Pure.
import {
  at,
  numberAt,
  recordAt,
  recordsAt,
  sameJson,
  textAt,
  textsAt,
  type ApiObject,
  type Json,
} from '../api/objects.ts';

export type EndpointPort = { readonly name: string; readonly protocol: string; readonly port: number };
export type Subset = { readonly ports: readonly EndpointPort[]; readonly pods: readonly ApiObject[] };

export const selectorOf = (service: Json): Json | undefined => {
  const selector = recordAt(service, 'spec', 'selector');
  return Object.keys(selector).length === 0 ? undefined : selector;
};

export const selects = (selector: Json, labels: Readonly<Record<string, string>> = {}): boolean =>
  Object.entries(selector).every(([key, value]) => labels[key] === value);

export const isReady = (pod: Json): boolean =>
  recordsAt(pod, 'status', 'conditions').some((c) => c['type'] === 'Ready' && c['status'] === 'True');

/** Pods with an address that have not ended, by what the service's ports mean in them. */
export function subsetsOf(service: Json, pods: readonly ApiObject[]): readonly Subset[] {
  const selector = selectorOf(service);
  if (selector === undefined) return [];
  const found: { ports: readonly EndpointPort[]; pods: ApiObject[] }[] = [];
  for (const pod of pods) {
    const hasEnded = ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'));
    if (hasEnded || textAt(pod, 'status', 'podIP') === '' || !selects(selector, pod.metadata.labels)) continue;
    const ports = portsIn(service, pod);
    const known = found.find((subset) => sameJson(subset.ports, ports));
    if (known === undefined) found.push({ ports, pods: [pod] });
    else known.pods.push(pod);
  }
  return found;
}

function portsIn(service: Json, pod: Json): readonly EndpointPort[] {
  return recordsAt(service, 'spec', 'ports').flatMap((port) => {
    const protocol = textAt(port, 'protocol') || 'TCP';
    const target = at(port, 'targetPort') ?? at(port, 'port');
    const number = typeof target === 'number' ? target : namedPort(pod, String(target), protocol);
    return number === undefined ? [] : [{ name: textAt(port, 'name'), protocol, port: number }];
  });
}

function namedPort(pod: Json, name: string, protocol: string): number | undefined {
  const sidecars = recordsAt(pod, 'spec', 'initContainers').filter((c) => c['restartPolicy'] === 'Always');
  for (const container of [...recordsAt(pod, 'spec', 'containers'), ...sidecars])
    for (const port of recordsAt(container, 'ports'))
      if (port['name'] === name && (textAt(port, 'protocol') || 'TCP') === protocol)
        return numberAt(port, 'containerPort');
  return undefined;
}

/** Of an endpoint slice: who may be sent traffic. */
export const readyAddresses = (slice: Json): readonly string[] =>
  recordsAt(slice, 'endpoints')
    .filter((endpoint) => at(endpoint, 'conditions', 'ready') !== false)
    .map((endpoint) => textsAt(endpoint, 'addresses')[0] ?? '')
    .filter((address) => address !== '');
