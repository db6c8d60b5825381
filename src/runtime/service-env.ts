// The environment variables by which a container finds the services of its namespace.
import type { Service } from '../core/node.ts';
import { namespaceOf, type Pod } from '../core/pod.ts';

const MASTER_NAMESPACE = 'default';
const MASTER_NAME = 'kubernetes';

const upper = (name: string): string => name.replaceAll('-', '_').toUpperCase();
const hasClusterIp = (service: Service): boolean => !['', 'None', undefined].includes(service.spec?.clusterIP);

/** The services visible to a pod: its namespace's when it wants links, and the API server's always. */
export function visibleServices(pod: Pod, services: readonly Service[]): readonly Service[] {
  const own = namespaceOf(pod);
  const chosen = new Map<string, Service>();
  for (const service of services) {
    const { name, namespace = '' } = service.metadata;
    if (!hasClusterIp(service)) continue;
    const master = namespace === MASTER_NAMESPACE && name === MASTER_NAME;
    if (master && !chosen.has(name)) chosen.set(name, service);
    else if (namespace === own && pod.spec.enableServiceLinks === true) chosen.set(name, service);
  }
  return [...chosen.values()];
}

export function serviceEnv(services: readonly Service[]): Map<string, string> {
  const env = new Map<string, string>();
  for (const service of services) addService(env, service);
  return env;
}

function addService(env: Map<string, string>, service: Service): void {
  const ip = service.spec?.clusterIP ?? '';
  const ports = service.spec?.ports ?? [];
  const first = ports[0];
  if (first === undefined) return;
  const prefix = upper(service.metadata.name);
  env.set(`${prefix}_SERVICE_HOST`, ip);
  env.set(`${prefix}_SERVICE_PORT`, String(first.port));
  for (const { name, port } of ports) if (name) env.set(`${prefix}_SERVICE_PORT_${upper(name)}`, String(port));
  for (const [i, { port, protocol }] of ports.entries()) {
    const proto = (protocol ?? 'TCP').toLowerCase();
    const host = ip.includes(':') ? `[${ip}]` : ip;
    const url = `${proto}://${host}:${port}`;
    if (i === 0) env.set(`${prefix}_PORT`, url);
    const portPrefix = `${prefix}_PORT_${port}_${proto.toUpperCase()}`;
    env.set(portPrefix, url);
    env.set(`${portPrefix}_PROTO`, proto);
    env.set(`${portPrefix}_PORT`, String(port));
    env.set(`${portPrefix}_ADDR`, ip);
  }
}
