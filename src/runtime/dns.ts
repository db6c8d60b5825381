// The resolver configuration of a pod: its policy, its own additions, and what resolvers can take at most.
import { goQuote } from '../core/downward.ts';
import { namespaceOf, podRef, type Pod } from '../core/pod.ts';
import { upTo } from '../lib/text.ts';

export type DnsConfig = {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
};
export type DnsFacts = {
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  /** The node's resolver file; undefined when the kubelet was told to use none. */
  readonly hostResolvConf: string | undefined;
  readonly nodeIps: readonly string[];
};
export type DnsWarning = { readonly reason: 'DNSConfigForming' | 'MissingClusterDNS'; readonly message: string };
/** What people are told of a warning, and of whom: `MissingClusterDNS` is the node's trouble as well. */
export function dnsEvents(
  pod: Pod,
  { reason, message }: DnsWarning,
): readonly { readonly about: 'node' | 'pod'; readonly message: string }[] {
  if (reason !== 'MissingClusterDNS') return [{ about: 'pod', message }];
  return [
    { about: 'node', message },
    { about: 'pod', message: `pod: ${goQuote(podRef(pod))}. ${message}` },
  ];
}

export type PodDns = { readonly config: DnsConfig; readonly warnings: readonly DnsWarning[] };

const MAX_SERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARS = 2048;
const MAX_SEARCH_LENGTH = 253;
export const MISSING_CLUSTER_DNS =
  'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.';

const unique = (items: readonly string[]): string[] => [...new Set(items)];

/** Reads resolv.conf: every nameserver, the last search line, the options of all lines, of each the last. */
export function parseResolvConf(text: string): DnsConfig {
  const servers: string[] = [];
  let searches: string[] = [];
  const options = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [key, ...rest] = upTo(line, '#', ';')
      .split(/\s+/)
      .filter((field) => field !== '');
    if (key === 'nameserver' && rest[0] !== undefined) servers.push(rest[0]);
    else if (key === 'search')
      searches = rest.map((s) => (s === '.' ? s : s.replace(/\.$/, ''))).filter((s) => s !== '.' && s !== '');
    else if (key === 'options') for (const option of rest) options.set(option.split(':', 1)[0] ?? '', option);
  }
  return { servers, searches, options: [...options.values()] };
}

export function podDns(pod: Pod, facts: DnsFacts): PodDns {
  const warnings: DnsWarning[] = [];
  const base = baseConfig(pod, facts, warnings);
  const merged = withOwnConfig(base, pod);
  return { config: withinLimits(merged, warnings), warnings };
}

function baseConfig(pod: Pod, facts: DnsFacts, warnings: DnsWarning[]): DnsConfig {
  switch (pod.spec.dnsPolicy ?? 'ClusterFirst') {
    case 'None':
      return { servers: [], searches: [], options: [] };
    case 'Default':
      return hostConfig(facts);
    case 'ClusterFirst':
      if (pod.spec.hostNetwork === true) return hostConfig(facts);
      break;
    default:
      break;
  }
  if (facts.clusterDns.length > 0) return clusterConfig(pod, facts);
  warnings.push({ reason: 'MissingClusterDNS', message: MISSING_CLUSTER_DNS });
  return hostConfig(facts);
}

function clusterConfig(pod: Pod, facts: DnsFacts): DnsConfig {
  const domain = facts.clusterDomain;
  const host = facts.hostResolvConf === undefined ? [] : parseResolvConf(facts.hostResolvConf).searches;
  const own = domain === '' ? [] : [`${namespaceOf(pod)}.svc.${domain}`, `svc.${domain}`, domain];
  return { servers: facts.clusterDns, searches: unique([...own, ...host]), options: ['ndots:5'] };
}

function hostConfig(facts: DnsFacts): DnsConfig {
  if (facts.hostResolvConf !== undefined) return parseResolvConf(facts.hostResolvConf);
  const loopbacks = facts.nodeIps.map((ip) => (ip.includes(':') ? '::1' : '127.0.0.1'));
  return { servers: loopbacks.length === 0 ? ['127.0.0.1'] : unique(loopbacks), searches: ['.'], options: [] };
}

function withOwnConfig(base: DnsConfig, pod: Pod): DnsConfig {
  const own = pod.spec.dnsConfig;
  if (own === undefined) return base;
  const options = new Map<string, string>();
  for (const option of base.options) {
    const [name = '', value] = option.split(/:(.*)/s);
    options.set(name, value ?? '');
  }
  for (const { name, value } of own.options ?? []) if (name) options.set(name, value ?? '');
  return {
    servers: unique([...base.servers, ...(own.nameservers ?? [])]),
    searches: unique([...base.searches, ...(own.searches ?? [])]),
    options: [...options].map(([name, value]) => (value === '' ? name : `${name}:${value}`)),
  };
}

function withinLimits(config: DnsConfig, warnings: DnsWarning[]): DnsConfig {
  const warn = (what: string, which: string, line: string, items: readonly string[]): void => {
    const message = `${what} limits were exceeded, some ${which} have been omitted, the applied ${line} line is: ${items.join(' ')}`;
    warnings.push({ reason: 'DNSConfigForming', message });
  };
  const servers = config.servers.slice(0, MAX_SERVERS);
  if (servers.length < config.servers.length) warn('Nameserver', 'nameservers', 'nameserver', servers);
  const searches = config.searches.slice(0, MAX_SEARCHES).filter((s) => s.length <= MAX_SEARCH_LENGTH);
  while (searches.join(' ').length > MAX_SEARCH_CHARS) searches.pop();
  if (searches.length < config.searches.length) warn('Search Line', 'search paths', 'search', searches);
  return { servers, searches, options: config.options };
}

/** What is too much in the node's resolver file for pods of the cluster. */
export function resolvConfProblem(path: string, text: string, clusterDomain: string): string | undefined {
  const { searches } = parseResolvConf(text);
  // A pod has three of the cluster beside.
  const most = clusterDomain === '' ? MAX_SEARCHES : MAX_SEARCHES - 3;
  if (searches.length > most)
    return `Resolv.conf file '${path}' contains search line consisting of more than ${most} domains!`;
  if (searches.some((s) => s.length > MAX_SEARCH_LENGTH))
    return `Resolv.conf file ${goQuote(path)} contains a search path which length is more than allowed ${MAX_SEARCH_LENGTH} chars!`;
  if (searches.join(' ').length > MAX_SEARCH_CHARS)
    return `Resolv.conf file '${path}' contains search line which length is more than allowed ${MAX_SEARCH_CHARS} chars!`;
  return undefined;
}
