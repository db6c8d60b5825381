// Which addresses the node has. The choice is pure; reading interfaces, routes and names is at the end.
import { lookup } from 'node:dns/promises';
import { BlockList, isIP, SocketAddress } from 'node:net';
import type { NodeAddress } from '../core/node.ts';
import { interfaceAddresses, type InterfaceAddress } from '../host/interface-addresses.ts';
import { kernelFiles } from '../host/kernel-files.ts';
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';

export type Family = 4 | 6;
export type HostNetwork = {
  /** Every address of every interface. */
  readonly local: readonly string[];
  /** What the node's name resolves to, in the resolver's order. */
  readonly resolved: readonly string[];
  /** First usable address of the interface with the default route. */
  readonly defaultRoute: Readonly<Partial<Record<Family, string>>>;
};

export type AddressOptions = {
  readonly hostname: string;
  /** `--node-ip`, parsed: at most two, of different families. */
  readonly nodeIps: readonly string[];
  readonly externalCloud: boolean;
};

const familyOf = (ip: string): Family => (isIP(ip) === 6 ? 6 : 4);

const SPECIAL: readonly [string, number, 'ipv4' | 'ipv6', string][] = [
  ['127.0.0.0', 8, 'ipv4', 'loopback address'],
  ['::1', 128, 'ipv6', 'loopback address'],
  ['224.0.0.0', 4, 'ipv4', 'a multicast address'],
  ['ff00::', 8, 'ipv6', 'a multicast address'],
  ['169.254.0.0', 16, 'ipv4', 'a link-local unicast address'],
  ['fe80::', 10, 'ipv6', 'a link-local unicast address'],
];
const LISTS = SPECIAL.map(([net, bits, type, what]) => {
  const list = new BlockList();
  list.addSubnet(net, bits, type);
  return { list, what };
});

/** The address that only names a family. */
export const isUnspecified = (ip: string): boolean => ip === '0.0.0.0' || ip === '::';

/** Undefined when `ip` may be a node's address. */
function whyNotNodeIp(ip: string, local: readonly string[]): string | undefined {
  if (isIP(ip) === 0) return `node IP: "${ip}" is not an IP address`;
  const type = isIP(ip) === 6 ? 'ipv6' : 'ipv4';
  for (const { list, what } of LISTS) if (list.check(ip, type)) return `nodeIP can't be ${what}`;
  if (isUnspecified(ip)) return "nodeIP can't be an all zeros address";
  if (!local.includes(ip)) return `node IP: "${ip}" not found in the host's network interfaces`;
  return undefined;
}

/** Throws where the configured address is wrong or none can be found. */
export function nodeAddresses(
  options: AddressOptions,
  network: HostNetwork,
  existing: readonly NodeAddress[],
): readonly NodeAddress[] {
  const { hostname, nodeIps, externalCloud } = options;
  const named: NodeAddress = { type: 'Hostname', address: hostname };
  if (externalCloud) {
    if (existing.length > 0) return existing;
    if (nodeIps.length === 0) return [named];
  }
  for (const [i, ip] of nodeIps.entries()) {
    const why = isUnspecified(ip) ? undefined : whyNotNodeIp(ip, network.local);
    const which = i === 0 ? 'nodeIP' : 'secondaryNodeIP';
    if (why !== undefined) throw new KubeletError('invalid', `failed to validate ${which}: ${why}`);
  }
  const ips = nodeIps.length === 2 ? nodeIps : [primaryIp(hostname, nodeIps[0], network)];
  return [...ips.map((address) => ({ type: 'InternalIP', address })), named];
}

function primaryIp(hostname: string, wanted: string | undefined, network: HostNetwork): string {
  if (wanted !== undefined && !isUnspecified(wanted)) return wanted;
  if (isIP(hostname) !== 0) return hostname;
  const family = wanted === undefined ? 4 : familyOf(wanted);
  const usable = network.resolved.filter((ip) => whyNotNodeIp(ip, network.local) === undefined);
  const other: Family = family === 4 ? 6 : 4;
  const found =
    usable.find((ip) => familyOf(ip) === family) ??
    usable[0] ??
    network.defaultRoute[family] ??
    network.defaultRoute[other];
  if (found === undefined) throw new KubeletError('unavailable', `can't get ip address of node ${hostname}`);
  return found;
}

/** `FD00:0:0::1` is the `fd00::1` that an interface shows. */
const canonicalIp = (ip: string): string =>
  isIP(ip) === 6 ? new SocketAddress({ address: ip, family: 'ipv6' }).address : ip;

/** `--node-ip` as a list. Entries that are no IP are ignored, as upstream does. */
export function parseNodeIps(flag: string): readonly string[] {
  const entries = flag.split(',').map((ip) => ip.trim());
  const ips = entries.filter((ip) => isIP(ip) !== 0).map(canonicalIp);
  const dual = ips.length === 2 && familyOf(ips[0] ?? '') !== familyOf(ips[1] ?? '');
  if (ips.length > 2 || (ips.length === 2 && !dual)) {
    throw new KubeletError(
      'invalid',
      `bad --node-ip "${flag}": must contain either a single IP or a dual-stack pair of IPs`,
    );
  }
  if (ips.length === 2 && ips.some(isUnspecified)) {
    throw new KubeletError('invalid', `dual-stack node IP cannot include '0.0.0.0' or '::'`);
  }
  return ips;
}

const FRESH_MS = 10_000;
const LOOKUP_MS = 2000;

/** Reads at most every ten seconds, and does not wait for a name service that does not answer. */
export function hostNetworkReader(clock: Clock, nodeName: string): (signal: AbortSignal) => Promise<HostNetwork> {
  let known: { network: HostNetwork; at: number } | undefined;
  return async (signal) => {
    if (known !== undefined && clock.monotonic() - known.at < FRESH_MS) return known.network;
    const asked = withDeadline(clock, signal, LOOKUP_MS, (s) => abortable(s, resolveName(nodeName)));
    // No answer in time is no reason for the node to change its address.
    const network = await hostNetwork(await asked.catch(() => known?.network.resolved ?? []));
    signal.throwIfAborted();
    known = { network, at: clock.monotonic() };
    return network;
  };
}

export const readHostNetwork = async (nodeName: string): Promise<HostNetwork> =>
  await hostNetwork(await resolveName(nodeName));

const resolveName = (nodeName: string): Promise<readonly string[]> =>
  lookup(nodeName, { all: true, order: 'verbatim' }).then(
    (list) => list.map((entry) => entry.address),
    () => [], // no name service for the node: the default route decides
  );

async function hostNetwork(resolved: readonly string[]): Promise<HostNetwork> {
  const interfaces = interfaceAddresses();
  const devices4 = defaultDevices4(await kernelFiles.text('/proc/net/route').catch(() => ''));
  const devices6 = defaultDevices6(await kernelFiles.text('/proc/net/ipv6_route').catch(() => ''));
  const v4 = defaultAddress(devices4, interfaces, 4);
  const v6 = defaultAddress(devices6, interfaces, 6);
  return {
    local: interfaces.map(({ address }) => address),
    resolved,
    defaultRoute: { ...(v4 === undefined ? {} : { 4: v4 }), ...(v6 === undefined ? {} : { 6: v6 }) },
  };
}

/**
 * The first usable address on the devices with a default route. Where these have none, as with routes over link-local
 * neighbours (RFC 5549), the node's address is on the loopback device.
 */
export function defaultAddress(
  devices: readonly string[],
  interfaces: readonly InterfaceAddress[],
  family: Family,
): string | undefined {
  const local = interfaces.map(({ address }) => address);
  const isUsable = (ip: string): boolean => familyOf(ip) === family && whyNotNodeIp(ip, local) === undefined;
  for (const device of devices.flatMap((one) => [one, 'lo'])) {
    const found = interfaces.find((entry) => entry.device === device && isUsable(entry.address));
    if (found !== undefined) return found.address;
  }
  return undefined;
}

/** Devices of the routes to 0.0.0.0 in /proc/net/route, in the kernel's order. */
export const defaultDevices4 = (table: string): readonly string[] =>
  table
    .split('\n')
    .slice(1)
    .flatMap((row) => {
      const [device = '', destination] = row.trim().split(/\s+/);
      return destination === '00000000' ? [device] : [];
    });

const ZERO6 = '0'.repeat(32);

/** Devices of the routes to :: through a gateway in /proc/net/ipv6_route, in the kernel's order. */
export const defaultDevices6 = (table: string): readonly string[] =>
  table.split('\n').flatMap((row) => {
    const [destination, , , , gateway, , , , , device = ''] = row.trim().split(/\s+/);
    return destination === ZERO6 && gateway !== ZERO6 && device !== '' ? [device] : [];
  });

/** The addresses, or none to be told when they cannot be found out: a node keeps the ones it had. */
export function addressesOrNone(
  onFailure: (err: unknown) => void,
  ...given: Parameters<typeof nodeAddresses>
): { readonly addresses?: ReturnType<typeof nodeAddresses> } {
  try {
    return { addresses: nodeAddresses(...given) };
  } catch (err) {
    onFailure(err);
    return {};
  }
}
