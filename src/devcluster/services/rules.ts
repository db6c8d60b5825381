// Services as rules of iptables: who asks for a service's address gets one of its pods by lot. Pure.
// All rules are set together, so that one that iptables refuses would keep those of every service away: what is no IPv4
// address, port or protocol makes none.
import { isIPv4 } from 'node:net';
import { listAt, numberAt, recordsAt, textAt, type Json } from '../api/objects.ts';
import { readyAddresses } from './endpoints.ts';

export type ProxiedNetwork = { readonly name: string; readonly bridge: string; readonly subnet: string };

const PROTOCOLS = ['tcp', 'udp', 'sctp'];
const isPort = (port: number | undefined): boolean =>
  port !== undefined && Number.isInteger(port) && port > 0 && port < 65_536;

/** Whoever removes the network's rules finds them by this. */
const comment = (network: ProxiedNetwork): readonly string[] => [
  '-m',
  'comment',
  '--comment',
  `name: "${network.name}"`,
];

export const chainOf = (network: { readonly name: string }): string => `KTS-${network.name}`;

export type FixedRule = { readonly table: 'nat' | 'filter'; readonly chain: string; readonly rule: readonly string[] };

/** The rules that are always there, whatever services there are. */
export function fixedRules(network: ProxiedNetwork, services: string): readonly FixedRule[] {
  const named = comment(network);
  const { bridge, subnet } = network;
  return [
    { table: 'nat', chain: 'PREROUTING', rule: [...named, '-j', chainOf(network)] },
    { table: 'nat', chain: 'OUTPUT', rule: [...named, '-j', chainOf(network)] },
    // From pod to pod of one bridge: the answer must come back this way, not straight.
    {
      table: 'nat',
      chain: 'POSTROUTING',
      rule: ['-s', subnet, '-d', subnet, '-m', 'conntrack', '--ctstate', 'DNAT', ...named, '-j', 'MASQUERADE'],
    },
    // What still has a service's address here has nobody behind it.
    { table: 'filter', chain: 'FORWARD', rule: ['-i', bridge, '-d', services, ...named, '-j', 'REJECT'] },
  ];
}

/** What `iptables-restore --noflush` gets: the whole chain anew. */
export function serviceRules(network: ProxiedNetwork, services: readonly Json[], slices: readonly Json[]): string {
  const chain = chainOf(network);
  const rules = services.flatMap((service) => rulesOf(service, slices)).map((rule) => `-A ${chain} ${rule}`);
  return ['*nat', `:${chain} - [0:0]`, ...rules, 'COMMIT', ''].join('\n');
}

function rulesOf(service: Json, slices: readonly Json[]): readonly string[] {
  const address = textAt(service, 'spec', 'clusterIP');
  if (!isIPv4(address)) return [];
  const [namespace, name] = [textAt(service, 'metadata', 'namespace'), textAt(service, 'metadata', 'name')];
  const its = slices.filter(
    (slice) =>
      textAt(slice, 'metadata', 'namespace') === namespace &&
      textAt(slice, 'metadata', 'labels', 'kubernetes.io/service-name') === name,
  );
  const external = listAt(service, 'spec', 'externalIPs').filter((ip) => typeof ip === 'string' && isIPv4(ip));
  return recordsAt(service, 'spec', 'ports').flatMap((port) => {
    const protocol = (textAt(port, 'protocol') || 'TCP').toLowerCase();
    if (!PROTOCOLS.includes(protocol) || !isPort(numberAt(port, 'port'))) return [];
    const targets = targetsOf(its, textAt(port, 'name'), protocol);
    const nodePort = numberAt(port, 'nodePort') ?? 0;
    const number = numberAt(port, 'port') ?? 0;
    const asked = [
      ...[address, ...external].map((ip) => `-d ${ip}/32 -p ${protocol} -m ${protocol} --dport ${number}`),
      ...(isPort(nodePort) ? [`-m addrtype --dst-type LOCAL -p ${protocol} -m ${protocol} --dport ${nodePort}`] : []),
    ];
    return asked.flatMap((match) => byLot(match, targets));
  });
}

function targetsOf(slices: readonly Json[], portName: string, protocol: string): readonly string[] {
  return slices.flatMap((slice) => {
    const port = recordsAt(slice, 'ports').find(
      (p) => textAt(p, 'name') === portName && (textAt(p, 'protocol') || 'TCP').toLowerCase() === protocol,
    );
    const number = numberAt(port, 'port');
    if (!isPort(number)) return [];
    return readyAddresses(slice)
      .filter((ip) => isIPv4(ip))
      .map((ip) => `${ip}:${number}`);
  });
}

/** The first takes one in n, the next one in n - 1 of what is left, the last all. */
const byLot = (match: string, targets: readonly string[]): readonly string[] =>
  targets.map((target, i) => {
    const left = targets.length - i;
    const chance = left === 1 ? '' : ` -m statistic --mode random --probability ${(1 / left).toFixed(6)}`;
    return `${match}${chance} -j DNAT --to-destination ${target}`;
  });
