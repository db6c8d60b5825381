// Which of a sandbox's addresses are the pod's. Runtimes may give any number of them in any order. Pure.
import { isIP } from 'node:net';

export type IpFamily = 4 | 6;

/** The family of a pod's first address: that of `--node-ip`, IPv4 without one, whatever addresses a cloud gave the node. */
export function podIpFamily(nodeIp: string): IpFamily {
  const families = nodeIp.split(',').map((ip) => isIP(ip.trim()));
  return families.find((family) => family !== 0) === 6 ? 6 : 4;
}

/** At most one address per family. */
export function podIpsOf(ips: readonly string[], family: IpFamily): readonly string[] {
  const isFirst = (ip: string): boolean => ip.includes(':') === (family === 6);
  const first = ips.find(isFirst);
  const second = ips.find((ip) => !isFirst(ip));
  return [first, second].filter((ip) => ip !== undefined);
}
