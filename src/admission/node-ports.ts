// Host ports: two pods cannot have the same one on the same address.
import { isSidecar, type ContainerPort, type Pod } from '../core/pod.ts';

const hostPortsOf = (pod: Pod): readonly ContainerPort[] =>
  [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter(isSidecar)]
    .flatMap((container) => container.ports ?? [])
    .filter((port) => (port.hostPort ?? 0) > 0);

const ANY = '0.0.0.0';
const addressOf = (port: ContainerPort): string => port.hostIP || ANY;

const clash = (a: ContainerPort, b: ContainerPort): boolean =>
  a.hostPort === b.hostPort &&
  (a.protocol ?? 'TCP') === (b.protocol ?? 'TCP') &&
  (addressOf(a) === ANY || addressOf(b) === ANY || addressOf(a) === addressOf(b));

export function hasFreePorts(pod: Pod, others: readonly Pod[]): boolean {
  const wanted = hostPortsOf(pod);
  if (wanted.length === 0) return true;
  const taken = others.flatMap(hostPortsOf);
  return !wanted.some((port) => taken.some((other) => clash(port, other)));
}
