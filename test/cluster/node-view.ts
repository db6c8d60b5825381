// What the cluster sees of the node itself.
import type { KubeEvent, Lease, Node, NodeCondition } from '../../src/core/node.ts';
import { EVENTS, LEASES, NODES } from '../../src/kube/resources.ts';
import { isFault } from '../../src/lib/errors.ts';
import { NODE_NAME, type TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';
import { never } from './scene.ts';

export const readNode = (node: TestNode): Promise<Node> => node.client.get(NODES, { name: NODE_NAME }, never);

export const readLease = async (node: TestNode): Promise<Lease | undefined> => {
  try {
    return await node.client.get(LEASES, { namespace: 'kube-node-lease', name: NODE_NAME }, never);
  } catch (err) {
    if (isFault(err, 'notFound')) return undefined;
    throw err;
  }
};

export const conditionOfNode = (node: Node, type: string): NodeCondition | undefined =>
  node.status?.conditions?.find((c) => c.type === type);

export const untilNode = (node: TestNode, what: string, check: (seen: Node) => boolean): Promise<Node> =>
  until(`the node ${what}`, async () => {
    const seen = await readNode(node);
    return check(seen) && seen;
  });

export const nodeReady = (node: TestNode): Promise<Node> =>
  untilNode(node, 'is ready', (seen) => conditionOfNode(seen, 'Ready')?.status === 'True');

export const nodeEvent = (node: TestNode, reason: string, since = ''): Promise<KubeEvent> =>
  until(`the node has an event ${reason}`, async () => {
    const query = { fieldSelector: `involvedObject.kind=Node,reason=${reason}` };
    const { items } = await node.client.list(EVENTS, { namespace: 'default', query }, never);
    return items.find((e) => (e.lastTimestamp ?? '') >= since);
  });
