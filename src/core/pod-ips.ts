// Which of a sandbox's addresses are the pod's. Runtimes may give any number of them in any order. Pure.

const isV6 = (ip: string): boolean => ip.includes(':');

/** At most one address per family, the node's own family first. */
export function podIpsOf(ips: readonly string[], hostIP: string | undefined): readonly string[] {
  const primaryV6 = hostIP !== undefined && isV6(hostIP);
  const first = ips.find((ip) => isV6(ip) === primaryV6);
  const second = ips.find((ip) => isV6(ip) !== primaryV6);
  return [first, second].filter((ip) => ip !== undefined);
}
