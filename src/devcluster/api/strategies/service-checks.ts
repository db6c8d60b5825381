// What a service must say, and which addresses and node ports it may have. Pure.
import { isIP } from 'node:net';
import {
  dns1123Label,
  dns1123Subdomain,
  labelValue,
  portName,
  portNumber,
  qualifiedName,
} from '../../../core/names.ts';
import type { Findings } from '../../../core/validation/field-error.ts';
import { at, listAt, numberAt, recordAt, recordsAt, textAt, type Json } from '../objects.ts';

/** The addresses of services; the first `reserved` are not given to those who do not ask for one by name. */
export const SERVICE_ADDRESSES = { first: [10, 96, 0, 0], size: 65_536, reserved: 16, range: '10.96.0.0/16' } as const;
export const NODE_PORTS = { first: 30_000, count: 2768 } as const;
const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

export const typeOf = (service: Json): string => textAt(service, 'spec', 'type');
export const usesNodePorts = (service: Json): boolean => ['NodePort', 'LoadBalancer'].includes(typeOf(service));
const isHeadless = (service: Json): boolean => textAt(service, 'spec', 'clusterIP') === 'None';
const nodePortsOf = (service: Json): number[] =>
  recordsAt(service, 'spec', 'ports').flatMap((port) => numberAt(port, 'nodePort') || []);

/** `others` are the services there are besides this one, `old` is what it was before. */
export function checkService(f: Findings, service: Json, old: Json | undefined, others: readonly Json[]): void {
  const spec = recordAt(service, 'spec');
  f.oneOf('spec.type', typeOf(service), TYPES);
  f.oneOf('spec.sessionAffinity', textAt(spec, 'sessionAffinity'), ['ClientIP', 'None']);
  if (recordsAt(spec, 'ports').length === 0 && !isHeadless(service) && typeOf(service) !== 'ExternalName')
    f.required('spec.ports');
  if (typeOf(service) === 'ExternalName') checkExternalName(f, spec);
  else checkClusterAddress(f, service, old, others);
  checkPorts(f, service);
  checkNodePorts(f, service, old, others);
  for (const [key, value] of Object.entries(recordAt(spec, 'selector'))) {
    f.reasons('spec.selector', key, qualifiedName(key));
    f.reasons('spec.selector', value, labelValue(String(value)));
  }
  listAt(spec, 'externalIPs').forEach((ip, i) => checkExternalAddress(f, `spec.externalIPs[${i}]`, String(ip)));
}

function checkExternalName(f: Findings, spec: Json): void {
  if (textAt(spec, 'clusterIP') !== '') f.forbidden('spec.clusterIPs', 'may not be set for ExternalName services');
  f.name('spec.externalName', textAt(spec, 'externalName').replace(/\.$/, ''), dns1123Subdomain);
}

function checkClusterAddress(f: Findings, service: Json, old: Json | undefined, others: readonly Json[]): void {
  const address = textAt(service, 'spec', 'clusterIP');
  if (isHeadless(service)) {
    if (usesNodePorts(service))
      f.invalid('spec.clusterIPs[0]', address, `may not be set to 'None' for ${typeOf(service)} services`);
    return;
  }
  if (address === '' || address === textAt(old, 'spec', 'clusterIP')) return;
  const fails = (why: string): void =>
    f.invalid('spec.clusterIPs', [address], `failed to allocate IP ${address}: ${why}`);
  if (isIP(address) === 0)
    f.invalid('spec.clusterIPs[0]', address, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)');
  else if (!address.startsWith(SERVICE_ADDRESSES.first.slice(0, 2).join('.').concat('.')))
    fails('the provided network does not match the current range');
  else if (others.some((other) => textAt(other, 'spec', 'clusterIP') === address))
    fails('provided IP is already allocated');
}

function checkPorts(f: Findings, service: Json): void {
  const ports = recordsAt(service, 'spec', 'ports');
  const [names, seen] = [new Set<string>(), new Set<string>()];
  ports.forEach((port, i) => {
    const field = `spec.ports[${i}]`;
    const name = textAt(port, 'name');
    if (ports.length > 1 && name === '') f.required(`${field}.name`);
    else if (name !== '') f.reasons(`${field}.name`, name, dns1123Label(name));
    if (name !== '' && names.has(name)) f.duplicate(`${field}.name`, name);
    names.add(name);
    const number = numberAt(port, 'port') ?? 0;
    const protocol = textAt(port, 'protocol');
    f.reasons(`${field}.port`, number, portNumber(number));
    f.oneOf(`${field}.protocol`, protocol, PROTOCOLS);
    const target = at(port, 'targetPort');
    if (typeof target === 'string') f.reasons(`${field}.targetPort`, target, portName(target));
    else f.reasons(`${field}.targetPort`, target, portNumber(Number(target)));
    if (seen.has(`${protocol} ${number}`)) f.duplicate(field, { port: number, protocol });
    seen.add(`${protocol} ${number}`);
  });
}

function checkNodePorts(f: Findings, service: Json, old: Json | undefined, others: readonly Json[]): void {
  const { first, count } = NODE_PORTS;
  const mine = new Set(old === undefined ? [] : nodePortsOf(old));
  const taken = new Set(others.flatMap(nodePortsOf));
  const seen = new Set<string>();
  recordsAt(service, 'spec', 'ports').forEach((port, i) => {
    const field = `spec.ports[${i}].nodePort`;
    const number = numberAt(port, 'nodePort') ?? 0;
    if (number === 0) return;
    if (typeOf(service) === 'ClusterIP') return f.forbidden(field, "may not be used when `type` is 'ClusterIP'");
    const key = `${textAt(port, 'protocol')} ${number}`;
    if (seen.has(key)) f.duplicate(field, number);
    seen.add(key);
    if (mine.has(number)) return;
    if (number < first || number >= first + count)
      f.invalid(
        field,
        number,
        `provided port is not in the valid range. The range of valid ports is ${first}-${first + count - 1}`,
      );
    else if (taken.has(number)) f.invalid(field, number, 'provided port is already allocated');
  });
}

function checkExternalAddress(f: Findings, field: string, ip: string): void {
  if (isIP(ip) === 0) f.invalid(field, ip, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)');
  else if (ip === '0.0.0.0' || ip === '::') f.invalid(field, ip, `may not be unspecified (${ip})`);
  else if (ip.startsWith('127.') || ip === '::1')
    f.invalid(field, ip, 'may not be in the loopback range (127.0.0.0/8, ::1/128)');
  else if (ip.startsWith('169.254.') || /^fe[89ab]/i.test(ip))
    f.invalid(field, ip, 'may not be in the link-local range (169.254.0.0/16, fe80::/10)');
}
