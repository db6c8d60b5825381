// The node where no API server has one: enough for admission, labels to select by and what can be asked for.
import type { Environment } from '../config/environment.ts';
import type { Node, NodeAddress } from '../core/node.ts';
import type { ResourceList } from '../core/pod.ts';
import { goArch } from '../host/host-facts.ts';
import { nodeAddresses, parseNodeIps, readHostNetwork } from './addresses.ts';
import { hostIps } from './node-facts.ts';

export type StandaloneNodeDeps = {
  readonly resources: { capacityList(): ResourceList; allocatableList(): ResourceList };
  readonly health: { state(): { readonly features: { readonly supplementalGroupsPolicy: boolean } } };
};

export type StandaloneNode = { node(): Node; nodeIps(): readonly string[] };

/** The addresses are read once: nobody is told of others. */
export async function createStandaloneNode(
  env: Pick<Environment, 'flags' | 'nodeName'>,
  deps: StandaloneNodeDeps,
): Promise<StandaloneNode> {
  const { flags, nodeName } = env;
  const wanted = { hostname: nodeName, nodeIps: parseNodeIps(flags.nodeIp), externalCloud: false };
  const addresses = nodeAddresses(wanted, await readHostNetwork(nodeName), []);
  const nodeIps = hostIps(addresses);
  return { node: () => standaloneNode(env, deps, addresses), nodeIps: () => nodeIps };
}

export const standaloneNode = (
  { nodeName, flags }: Pick<Environment, 'flags' | 'nodeName'>,
  { resources, health }: StandaloneNodeDeps,
  addresses: readonly NodeAddress[],
): Node => ({
  metadata: {
    name: nodeName,
    labels: {
      'kubernetes.io/hostname': nodeName,
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': goArch(process.arch),
      ...flags.nodeLabels,
    },
  },
  spec: {},
  status: {
    capacity: resources.capacityList(),
    allocatable: resources.allocatableList(),
    addresses,
    features: { supplementalGroupsPolicy: health.state().features.supplementalGroupsPolicy },
  },
});
