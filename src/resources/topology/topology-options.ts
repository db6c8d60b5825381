// Settings of the topology manager: policy, scope, options and what the machine must offer for them. Pure.
import type { NumaNode } from '../../host/topology/machine-topology.ts';
import { KubeletError } from '../../lib/errors.ts';
import { parseGoBool, parseGoInt } from './go-values.ts';
import type { MergeOptions, TopologyPolicyName } from './merge.ts';

export type TopologyScope = 'container' | 'pod';
export type TopologySettings = { readonly merge: MergeOptions; readonly scope: TopologyScope };

const MAX_NUMA_NODES = 8;
/** As many as upstream's sets of nodes have bits. */
const MAX_REPRESENTABLE_NODES = 64;

export type TopologyConfig = {
  readonly policy: string;
  readonly scope: string;
  readonly options: Readonly<Record<string, string>>;
};

export function topologySettings(
  { policy, scope, options }: TopologyConfig,
  nodes: readonly NumaNode[],
): TopologySettings {
  const ids = nodes.map(({ id }) => id);
  if (policy === 'none') return { merge: { policy, nodes: ids, distances: undefined }, scope: 'container' };
  const { preferClosest, maxNodes } = parseOptions(options);
  if (preferClosest && nodes.some(({ distances }) => distances.length === 0))
    throw new KubeletError('invalid', 'cannot discover NUMA topology: error getting NUMA distances from cadvisor');
  if (nodes.length > maxNodes)
    throw new KubeletError('invalid', `unsupported on machines with more than ${maxNodes} NUMA Nodes`);
  if (!isPolicy(policy)) throw new KubeletError('invalid', `unknown policy: "${policy}"`);
  if (scope !== 'container' && scope !== 'pod') throw new KubeletError('invalid', `unknown scope: "${scope}"`);
  const distances = preferClosest ? new Map(nodes.map((node) => [node.id, distancesById(node, ids)])) : undefined;
  return { merge: { policy, nodes: ids, distances }, scope };
}

/** The kernel lists distances in the order of the nodes that are online; ids may have gaps. */
function distancesById({ distances }: NumaNode, ids: readonly number[]): readonly number[] {
  const byId: number[] = [];
  for (const [rank, id] of ids.entries()) byId[id] = distances[rank] ?? 0;
  return byId;
}

const isPolicy = (name: string): name is Exclude<TopologyPolicyName, 'none'> =>
  name === 'best-effort' || name === 'restricted' || name === 'single-numa-node';

function parseOptions(options: Readonly<Record<string, string>>): {
  readonly preferClosest: boolean;
  readonly maxNodes: number;
} {
  let preferClosest = false;
  let maxNodes = MAX_NUMA_NODES;
  for (const [name, value] of Object.entries(options)) {
    if (name === 'prefer-closest-numa-nodes') {
      const parsed = parseGoBool(value);
      if (parsed === undefined)
        throw new KubeletError(
          'invalid',
          `bad value for option "${name}": strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`,
        );
      preferClosest = parsed;
    } else if (name === 'max-allowable-numa-nodes') maxNodes = maxNodesOf(name, value);
    else throw new KubeletError('invalid', `unknown Topology Manager Policy option: "${name}"`);
  }
  return { preferClosest, maxNodes: Math.min(maxNodes, MAX_REPRESENTABLE_NODES) };
}

function maxNodesOf(name: string, value: string): number {
  const parsed = parseGoInt(value);
  if (typeof parsed === 'string')
    throw new KubeletError('invalid', `unable to convert policy option to integer "${name}": ${parsed}`);
  if (parsed < MAX_NUMA_NODES)
    throw new KubeletError('invalid', `the minimum value of "${name}" should not be less than ${MAX_NUMA_NODES}`);
  return parsed;
}
