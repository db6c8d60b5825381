// The hosts file every container of a pod sees.
import type { Pod } from '../core/pod.ts';
import { podHostname } from './hostname.ts';

const HEAD = '# Kubernetes-managed hosts file.\n';
const HOST_NETWORK_HEAD = '# Kubernetes-managed hosts file (host network).\n';
const LOCAL = [
  '127.0.0.1\tlocalhost',
  '::1\tlocalhost ip6-localhost ip6-loopback',
  'fe00::0\tip6-localnet',
  'fe00::0\tip6-mcastprefix',
  'fe00::1\tip6-allnodes',
  'fe00::2\tip6-allrouters',
];

export function hostsFile(pod: Pod, ips: readonly string[], clusterDomain: string): string {
  const { hostname, domain } = podHostname(pod, clusterDomain);
  const lines = ips.map((ip) => (domain === '' ? `${ip}\t${hostname}` : `${ip}\t${hostname}.${domain}\t${hostname}`));
  return `${HEAD}${[...LOCAL, ...lines].join('\n')}\n${aliases(pod)}`;
}

/** For pods on the host's network: the node's own file and the aliases. */
export const hostNetworkHostsFile = (pod: Pod, nodeHosts: string): string =>
  `${HOST_NETWORK_HEAD}${nodeHosts}${aliases(pod)}`;

function aliases(pod: Pod): string {
  const entries = pod.spec.hostAliases ?? [];
  if (entries.length === 0) return '';
  const lines = entries.map(({ ip, hostnames }) => `${ip}\t${(hostnames ?? []).join('\t')}\n`);
  return `\n# Entries added by HostAliases.\n${lines.join('')}`;
}
