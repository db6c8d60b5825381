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

it('a pod that gives something back holds it until its status says that it did', () => {
  const big: Node = { metadata: { name: 'n' }, status: { allocatable: { pods: '10', cpu: '2', memory: '2Gi' } } };
  const running = (cpu: string, memory: string, allocated = cpu): Pod['status'] =>
    ({
      containerStatuses: [
        { name: 'c', resources: { requests: { cpu, memory } }, allocatedResources: { cpu: allocated } },
      ],
    }) as unknown as Pod['status'];
  const asking = (requests: Record<string, string>, status: Pod['status'] = {}): Pod => ({
    metadata: { name: 'o' },
    spec: { containers: [{ name: 'c', resources: { requests } }] },
    status: status ?? {},
  });
  const whole = (cpu: string, status: object): Pod => ({
    metadata: { name: 'o' },
    spec: { containers: [{ name: 'c' }], resources: { requests: { cpu } }, overhead: { cpu: '100m' } },
    status,
  });
  const sized = (name: string, cpu: string): object => ({ name, resources: { requests: { cpu } } });
  const restarting = { name: 's', restartPolicy: 'Always', resources: { requests: { cpu: '100m' } } } as const;
  const inits = (initContainerStatuses: object[]): Pod => ({
    metadata: { name: 'o' },
    spec: {
      initContainers: [restarting, { name: 'i', resources: { requests: { cpu: '100m' } } }],
      containers: [{ name: 'c' }],
    },
    status: { initContainerStatuses } as unknown as Pod['status'] & object,
  });
  const rows: [what: string, other: Pod, resource: string, used: number][] = [
    ['it shows no status', asking({ cpu: '1' }), 'cpu', 1000],
    ['it shows what it asks for', asking({ cpu: '1' }, running('1', '0')), 'cpu', 1000],
    ['less is not in force yet', asking({ cpu: '1' }, running('1500m', '0', '1')), 'cpu', 1500],
    ['less is not shown as granted yet', asking({ cpu: '1' }, running('1', '0', '1600m')), 'cpu', 1600],
    ['of one thing only', asking({ cpu: '1', memory: '1Gi' }, running('1', '1536Mi')), 'memory', 1536 * 2 ** 20],
    ['more counts as soon as it is granted', asking({ cpu: '1' }, running('500m', '0')), 'cpu', 1000],
    ['nothing is asked for any more', asking({}, running('700m', '0')), 'cpu', 700],
    ['as a whole, nothing shown', whole('1', {}), 'cpu', 1100],
    ['as a whole, in force', whole('1', { resources: { requests: { cpu: '1500m' } } }), 'cpu', 1500],
    ['as a whole, granted', whole('1', { resources: {}, allocatedResources: { cpu: '1700m' } }), 'cpu', 1700],
    ['a sidecar', inits([sized('s', '300m'), sized('i', '100m')]), 'cpu', 400],
    ['not one that runs to its end', inits([sized('s', '100m'), sized('i', '900m')]), 'cpu', 200],
  ];
  for (const [what, other, resource, used] of rows) {
    const wanted = asking({ cpu: '3', memory: '3Gi' });
    assert.equal(shortagesOf(wanted, [other], big).find((s) => s.resource === resource)?.used, used, what);
  }
});
