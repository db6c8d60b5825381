// Which proxy leads to the API server: the kubeconfig's own, or the environment's as Go programs read it.
import { BlockList, isIP } from 'node:net';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Undefined: straight there. `explicit` is the kubeconfig's `proxy-url`, which counts whatever the environment says. */
export function proxyFor(server: URL, explicit: string | undefined, env: Environment): URL | undefined {
  if (explicit !== undefined) return new URL(explicit);
  const from = server.protocol === 'https:' ? read(env, 'HTTPS_PROXY') : read(env, 'HTTP_PROXY');
  if (from === '' || isExempt(server, read(env, 'NO_PROXY'))) return undefined;
  const url = URL.parse(from.includes('://') ? from : `http://${from}`);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') ? url : undefined;
}

const read = (env: Environment, name: string): string => (env[name] || env[name.toLowerCase()] || '').trim();

export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');
export const portOf = (url: URL): number => Number(url.port) || (url.protocol === 'http:' ? 80 : 443);

function isExempt(server: URL, list: string): boolean {
  const host = hostOf(server).toLowerCase();
  if (host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))) return true;
  return list
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== '' && matches(entry, host, portOf(server)));
}

/** `*`, an address, a range of addresses, or a name, which stands for itself and all below it; each maybe with a port. */
function matches(entry: string, host: string, port: number): boolean {
  if (entry === '*') return true;
  const range = /^(.+)\/(\d+)$/.exec(entry);
  if (range !== null) return isIn(range[1] ?? '', Number(range[2]), host);
  if (isIP(entry) !== 0) return entry === host;
  const [, bracketed, plain, wanted] = /^(?:\[(.+)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [];
  if (wanted !== undefined && Number(wanted) !== port) return false;
  const name = (bracketed ?? plain ?? '').replace(/^\*(?=\.)/, '');
  if (name === '') return false;
  return name.startsWith('.') ? host.endsWith(name) : host === name || host.endsWith(`.${name}`);
}

function isIn(network: string, bits: number, host: string): boolean {
  const family = isIP(network);
  if (family === 0 || isIP(host) !== family || bits > (family === 4 ? 32 : 128)) return false;
  const list = new BlockList();
  const type = family === 4 ? 'ipv4' : 'ipv6';
  list.addSubnet(network, bits, type);
  return list.check(host, type);
}
