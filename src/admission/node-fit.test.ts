import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Node } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import { shortagesOf, withAtLeast } from './node-fit.ts';

const node: Node = { metadata: { name: 'n' }, status: { allocatable: { pods: '10', 'v/card': '0', 'v/gpu': '3' } } };
const pod: Pod = {
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', resources: { requests: { 'v/card': '1', 'v/nic': '1' } } }] },
};

it('a pod that has its devices fits although their plugin is away', () => {
  assert.deepEqual(
    shortagesOf(pod, [], node).map((s) => s.resource),
    ['v/card'],
  );
  const raised = withAtLeast(
    node,
    new Map([
      ['v/card', 2],
      ['v/gpu', 1],
      ['v/nic', 1],
    ]),
  );
  assert.deepEqual(shortagesOf(pod, [], raised), []);
  assert.deepEqual(raised.status?.allocatable, { pods: '10', 'v/card': '2', 'v/gpu': '3', 'v/nic': '1' });
  assert.equal(withAtLeast(node, new Map([['v/gpu', 3]])), node);
});

it('what a claim serves is not taken from the node', () => {
  const mapping = { containerName: 'c', resourceName: 'v/card', requestName: 'r' };
  const claimed: Pod = {
    ...pod,
    status: { extendedResourceClaimStatus: { resourceClaimName: 'x', requestMappings: [mapping] } },
  };
  assert.deepEqual(shortagesOf(claimed, [], node), []);
  const one = withAtLeast(node, new Map([['v/card', 1]]));
  assert.deepEqual(shortagesOf(pod, [claimed], one), []);
  assert.equal(shortagesOf(pod, [pod], one).length, 1);
});
