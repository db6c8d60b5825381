// The names of the cluster: services, pods behind headless ones, ports. Pure.
import { at, numberAt, recordsAt, textAt, textsAt, type Json } from '../api/objects.ts';
import { TYPES, type Answer } from './dns-message.ts';

export const DOMAIN = 'cluster.local';

export type Names = {
  readonly service: (namespace: string, name: string) => Json | undefined;
  /** Endpoint slices of a service. */
  readonly slices: (namespace: string, service: string) => readonly Json[];
};

/** Answers for a name of the cluster; undefined when there is no such name. */
export type Found = readonly Answer[] | undefined;

export const isOurs = (name: string): boolean => name === DOMAIN || name.endsWith(`.${DOMAIN}`);

export function lookUp(name: string, type: number, names: Names): Found {
  const labels = name === DOMAIN ? [] : name.slice(0, -DOMAIN.length - 1).split('.');
  const kind = labels.pop();
  if (kind === undefined) return [];
  if (kind === 'pod') return podByAddress(labels, type);
  if (kind !== 'svc') return undefined;
  const namespace = labels.pop();
  const service = labels.pop();
  if (namespace === undefined || service === undefined) return [];
  const found = names.service(namespace, service);
  if (found === undefined) return undefined;
  const slices = names.slices(namespace, service);
  const suffix = `${service}.${namespace}.svc.${DOMAIN}`;
  if (labels.length === 2 && labels.every((label) => label.startsWith('_'))) return ports(found, labels, type, suffix);
  if (labels.length === 1) return host(slices, labels[0] ?? '', type);
  return labels.length === 0 ? addresses(found, slices, type) : undefined;
}

const only = (type: number, addressList: readonly string[]): readonly Answer[] =>
  type === TYPES.A ? addressList.map((address) => ({ type: 'A', address })) : [];

/** `10-244-1-2.default.pod`. */
function podByAddress(labels: readonly string[], type: number): Found {
  const match = /^(\d+)-(\d+)-(\d+)-(\d+)$/.exec(labels[0] ?? '');
  if (labels.length !== 2 || match === null) return labels.length < 2 ? [] : undefined;
  return only(type, [match.slice(1).join('.')]);
}

function addresses(service: Json, slices: readonly Json[], type: number): Found {
  if (textAt(service, 'spec', 'type') === 'ExternalName')
    return [{ type: 'CNAME', target: textAt(service, 'spec', 'externalName') }];
  const address = textAt(service, 'spec', 'clusterIP');
  if (address !== 'None') return only(type, address === '' ? [] : [address]);
  return only(type, slices.flatMap(ready).map(addressOf));
}

const ready = (slice: Json): readonly Json[] =>
  recordsAt(slice, 'endpoints').filter((endpoint) => at(endpoint, 'conditions', 'ready') !== false);
const addressOf = (endpoint: Json): string => textsAt(endpoint, 'addresses')[0] ?? '';

/** A pod by its host name. */
function host(slices: readonly Json[], name: string, type: number): Found {
  const found = slices.flatMap(ready).filter((endpoint) => textAt(endpoint, 'hostname') === name);
  return found.length === 0 ? undefined : only(type, found.map(addressOf));
}

/** `_http._tcp.web.default.svc`. */
function ports(service: Json, [port = '', protocol = '']: readonly string[], type: number, suffix: string): Found {
  const found = recordsAt(service, 'spec', 'ports').find(
    (p) => `_${textAt(p, 'name')}` === port && `_${(textAt(p, 'protocol') || 'TCP').toLowerCase()}` === protocol,
  );
  if (found === undefined) return undefined;
  return type === TYPES.SRV ? [{ type: 'SRV', port: numberAt(found, 'port') ?? 0, target: suffix }] : [];
}
