// The RunPodSandbox request. The same config goes along with every CreateContainer and PullImage of the pod.
import { Protocol, type PodSandboxConfig, type PortMapping } from '../cri/gen/cri.ts';
import { namespaceOf, type ContainerPort, type Pod } from '../core/pod.ts';
import type { Partially } from '../lib/proto/codec.ts';
import type { DnsConfig } from './dns.ts';
import { sandboxHostname } from './hostname.ts';
import { podLabels } from './labels.ts';
import { sandboxOverhead, sandboxResources, type ResourceFacts } from './linux-resources.ts';
import { podLogDir } from './log-paths.ts';
import type { UserNamespaceMapping } from './namespaces.ts';
import { sandboxSecurityContext } from './security-context.ts';

export type SandboxInput = {
  readonly pod: Pod;
  readonly attempt: number;
  readonly dns: DnsConfig;
  readonly cgroupParent: string;
  /** Groups that volumes bring along. */
  readonly extraGroups: readonly number[];
  readonly userns: UserNamespaceMapping | undefined;
  /** Whether some container of the pod owns its CPUs. */
  readonly exclusiveCpus?: boolean;
};
export type SandboxFacts = ResourceFacts & { readonly podLogsDir: string; readonly clusterDomain: string };

export function sandboxConfig(input: SandboxInput, facts: SandboxFacts): Partially<PodSandboxConfig> {
  const { pod, attempt, dns, cgroupParent } = input;
  const ports = portMappings(pod);
  const sysctls = pod.spec.securityContext?.sysctls ?? [];
  return {
    metadata: { name: pod.metadata.name, namespace: namespaceOf(pod), uid: pod.metadata.uid ?? '', attempt },
    ...(pod.spec.hostNetwork === true ? {} : { hostname: sandboxHostname(pod, facts.clusterDomain) }),
    logDirectory: podLogDir(facts.podLogsDir, pod),
    dnsConfig: dns,
    ...(ports.length === 0 ? {} : { portMappings: ports }),
    labels: { ...pod.metadata.labels, ...podLabels(pod) },
    annotations: { ...pod.metadata.annotations },
    linux: {
      cgroupParent,
      securityContext: sandboxSecurityContext(pod, input.extraGroups, input.userns),
      sysctls: Object.fromEntries(sysctls.map(({ name, value }) => [dottedSysctl(name), value])),
      overhead: sandboxOverhead(pod, facts),
      resources: sandboxResources(pod, facts, input.exclusiveCpus),
    },
  };
}

/** `net/ipv4/x` → `net.ipv4.x`; where the first separator is a dot, slashes stand for dots inside a segment. */
function dottedSysctl(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  if (first !== '/') return name;
  return name.replace(/[./]/g, (c) => (c === '/' ? '.' : '/'));
}

function portMappings(pod: Pod): Partially<PortMapping>[] {
  const seen = new Set<string>();
  const mappings: Partially<PortMapping>[] = [];
  for (const container of pod.spec.containers) {
    for (const port of container.ports ?? []) {
      const { protocol = 'TCP', containerPort, hostPort = 0, hostIP = '' } = port;
      const key = portKey(container.name, port);
      if (seen.has(key)) continue;
      seen.add(key);
      mappings.push({ protocol: Protocol[protocol] ?? Protocol.TCP, containerPort, hostPort, hostIp: hostIP });
    }
  }
  return mappings;
}

/** Two ports are the same when a container names them alike, or when address, protocol and numbers agree. */
function portKey(container: string, port: ContainerPort): string {
  if (port.name) return `${container}-${port.name}`;
  const { protocol = 'TCP', containerPort, hostPort = 0, hostIP = '' } = port;
  const family = hostIP === '' ? 'any' : hostIP.includes(':') ? 'v6' : 'v4';
  return `${container}-${family}-${protocol}-${hostIP}:${containerPort}:${hostPort}`;
}
