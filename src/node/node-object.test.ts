import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Node } from '../core/node.ts';
import {
  initialNode,
  nodeStatus,
  nodeStatusPatch,
  prepared,
  reconciledNode,
  statusChanged,
  wrongMachineLabels,
  type NodeFacts,
} from './node-object.ts';
import { NODE_OPTIONS } from './node-options.fixture.ts';

const options = NODE_OPTIONS;
const facts: NodeFacts = {
  host: {
    machineId: 'm',
    systemUuid: 's',
    bootId: 'b',
    kernelVersion: '6.18',
    osImage: 'Debian',
    architecture: 'amd64',
    swapBytes: 0,
  },
  capacity: { cpu: '2', 'ephemeral-storage': '1Ki', 'hugepages-2Mi': '0', memory: '3Ki', pods: '110' },
  allocatable: { cpu: '2', 'ephemeral-storage': '1Ki', 'hugepages-2Mi': '0', memory: '2Ki', pods: '110' },
  addresses: [
    { type: 'InternalIP', address: '10.89.0.1' },
    { type: 'Hostname', address: 'n1' },
  ],
  runtime: {
    name: 'containerd',
    version: '2.1.9',
    handlers: [{ name: 'runc', features: { recursiveReadOnlyMounts: true } }, { name: '' }],
    supplementalGroupsPolicy: true,
  },
  images: [
    { repoDigests: [], repoTags: ['small'], sizeBytes: 1 },
    { repoDigests: ['d1', 'd2'], repoTags: ['t1', 't2', 't3', 't4'], sizeBytes: 9 },
  ],
  pressure: { memory: false, disk: false, pid: false },
  notReady: ['CSINode is not yet initialized'],
  declaredFeatures: ['B', 'A'],
};
const at = Date.UTC(2026, 10, 15, 3, 16, 1);
const T = '2026-11-15T03:16:01Z';

describe('initialNode', () => {
  it('is what upstream posts', () => {
    const { node, events } = initialNode(options, facts, at);
    const condition = (type: string, reason: string, message: string): object => ({
      type,
      status: 'False',
      lastHeartbeatTime: T,
      lastTransitionTime: T,
      reason,
      message,
    });
    assert.deepEqual(events, ['NodeHasSufficientMemory', 'NodeHasNoDiskPressure', 'NodeHasSufficientPID']);
    assert.deepEqual(node.metadata, {
      name: 'n1',
      labels: {
        'beta.kubernetes.io/arch': 'amd64',
        'beta.kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': 'n1',
        'kubernetes.io/os': 'linux',
      },
      annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' },
    });
    assert.deepEqual(node.spec, {});
    assert.deepEqual(node.status?.conditions, [
      condition('MemoryPressure', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
      condition('DiskPressure', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
      condition('PIDPressure', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'),
      condition('Ready', 'KubeletNotReady', 'CSINode is not yet initialized'),
    ]);
    assert.deepEqual(node.status?.images, [
      { names: ['d1', 'd2', 't1', 't2', 't3'], sizeBytes: 9 },
      { names: ['small'], sizeBytes: 1 },
    ]);
    assert.deepEqual(node.status?.runtimeHandlers, [
      { name: '', features: { recursiveReadOnlyMounts: false, userNamespaces: false } },
      { name: 'runc', features: { recursiveReadOnlyMounts: true, userNamespaces: false } },
    ]);
    assert.deepEqual(node.status?.declaredFeatures, ['A', 'B']);
    assert.equal(node.status?.nodeInfo?.containerRuntimeVersion, 'containerd://2.1.9');
    assert.equal(node.status?.volumesInUse, undefined);
  });

  it('carries taints, labels, provider id and the external cloud marks', () => {
    const taint = { key: 'a', value: 'b', effect: 'NoSchedule' };
    const more = { nodeLabels: { 'kubernetes.io/os': 'x', l: '1' }, taints: [taint], providerId: 'p://1' };
    const cloud = { ...options, ...more, externalCloud: true, nodeIps: ['1.2.3.4'], registerSchedulable: false };
    const { node } = initialNode(cloud, facts, at);
    assert.equal(node.metadata.labels?.['l'], '1');
    assert.equal(node.metadata.labels?.['kubernetes.io/os'], 'x');
    assert.equal(node.metadata.annotations?.['alpha.kubernetes.io/provided-node-ip'], '1.2.3.4');
    const uninitialized = {
      key: 'node.cloudprovider.kubernetes.io/uninitialized',
      value: 'true',
      effect: 'NoSchedule',
    };
    assert.deepEqual(node.spec, { providerID: 'p://1', unschedulable: true, taints: [taint, uninitialized] });
  });

  it('gives the cloud no address to look for that only names a family', () => {
    for (const ip of ['0.0.0.0', '::']) {
      const { node } = initialNode({ ...options, externalCloud: true, nodeIps: [ip] }, facts, at);
      assert.equal(node.metadata.annotations?.['alpha.kubernetes.io/provided-node-ip'], undefined);
    }
  });
});

describe('features that a node declares', () => {
  const before = { declaredFeatures: ['Old'] };
  for (const [name, declaredFeatures, shown] of [
    ['replace those of before', ['New'], ['New']],
    ['stay as they were without the gate', undefined, ['Old']],
    ['stay as they were when there are none', [], ['Old']],
  ] as const)
    it(name, () => {
      const { declaredFeatures: _, ...rest } = facts;
      const now = { ...rest, ...(declaredFeatures === undefined ? {} : { declaredFeatures }) };
      assert.deepEqual(nodeStatus(before, options, now, at).status.declaredFeatures, shown);
    });
});

describe('nodeStatus', () => {
  const { node } = initialNode(options, facts, at);
  const first = node.status ?? {};

  it('keeps extended resources that others put into the capacity', () => {
    const first = node.status ?? {};
    const capacity = { ...first.capacity, 'example.com/dongle': '4', 'example.com/card': '2', 'hugepages-1Gi': '1Gi' };
    const { status } = nodeStatus(
      { ...first, capacity },
      options,
      {
        ...facts,
        capacity: { ...facts.capacity, 'example.com/card': '0' },
        allocatable: { ...facts.allocatable, 'example.com/card': '0' },
      },
      at,
    );
    assert.equal(status.capacity?.['example.com/dongle'], '4');
    assert.equal(status.allocatable?.['example.com/dongle'], '4');
    assert.equal(status.capacity['example.com/card'], '0');
    assert.equal(status.allocatable['example.com/card'], '0');
    assert.equal(status.capacity['hugepages-1Gi'], undefined);
  });

  it('keeps what others say of resources below kubernetes.io', () => {
    const { status } = nodeStatus(
      {
        ...first,
        capacity: { ...first.capacity, 'kubernetes.io/batch-cpu': '4000', memory: '1' },
        allocatable: {
          ...first.allocatable,
          'kubernetes.io/batch-cpu': '3000',
          'kubernetes.io/mid-cpu': '2',
          'example.com/gone': '1',
          'hugepages-1Gi': '1Gi',
        },
      },
      options,
      facts,
      at,
    );
    const { capacity, allocatable } = facts;
    assert.deepEqual(status.capacity, { ...capacity, 'kubernetes.io/batch-cpu': '4000' });
    const ofOthers = { 'kubernetes.io/batch-cpu': '4000', 'kubernetes.io/mid-cpu': '2' };
    assert.deepEqual(status.allocatable, { ...allocatable, ...ofOthers });
  });

  it('turns Ready with the recorded patch and tells about it once', () => {
    const ready = nodeStatus(first, options, { ...facts, notReady: [] }, at);
    assert.deepEqual(ready.events, ['NodeReady']);
    assert.deepEqual(nodeStatusPatch(node, { ...node, status: ready.status }), {
      status: {
        '$setElementOrder/conditions': ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
          type,
        })),
        conditions: [
          { message: 'kubelet is posting ready status', reason: 'KubeletReady', status: 'True', type: 'Ready' },
        ],
      },
    });
    assert.deepEqual(nodeStatus(ready.status, options, { ...facts, notReady: [] }, at + 5000).events, []);
  });

  it('a periodic report moves only heartbeat times, and that is no change', () => {
    const later = nodeStatus(first, options, facts, at + 300_000);
    assert.equal(statusChanged(first, later.status), false);
    const patch = nodeStatusPatch(node, { ...node, status: later.status }) as { status: { conditions: object[] } };
    assert.deepEqual(Object.keys(patch.status), ['$setElementOrder/conditions', 'conditions']);
    assert.deepEqual(patch.status.conditions[0], { lastHeartbeatTime: '2026-11-15T03:21:01Z', type: 'MemoryPressure' });
  });

  it('joins several reasons and adds missing capacity', () => {
    const { memory: _, ...capacity } = facts.capacity;
    const report = nodeStatus(first, options, { ...facts, capacity, notReady: ['a', 'b', 'a'] }, at);
    const ready = report.status.conditions?.find((c) => c.type === 'Ready');
    assert.equal(ready?.message, '[a, b, missing node capacity for resources: memory]');
    assert.deepEqual(report.events, [], 'still not ready: no event');
  });

  it('is ready without ephemeral storage where that is not counted', () => {
    const { 'ephemeral-storage': _, ...capacity } = facts.capacity;
    const ready = (localStorage: boolean): string | undefined =>
      nodeStatus(first, { ...options, localStorage }, { ...facts, capacity, notReady: [] }, at).status.conditions?.find(
        (c) => c.type === 'Ready',
      )?.message;
    assert.equal(ready(false), 'kubelet is posting ready status');
    assert.equal(ready(true), 'missing node capacity for resources: ephemeral-storage');
  });

  it('pressure comes and goes with its events and transition time', () => {
    const under = nodeStatus(
      first,
      options,
      { ...facts, pressure: { memory: true, disk: true, pid: true } },
      at + 1000,
    );
    assert.deepEqual(under.events, ['NodeHasInsufficientMemory', 'NodeHasDiskPressure', 'NodeHasInsufficientPID']);
    const condition = under.status.conditions?.[0];
    assert.equal(condition?.status, 'True');
    assert.equal(condition?.lastTransitionTime, '2026-11-15T03:16:02Z');
    assert.equal(condition?.reason, 'KubeletHasInsufficientMemory');
  });

  it('keeps what it cannot find out and what others wrote', () => {
    const foreign = { type: 'Foreign', status: 'True' as const };
    const before = { ...first, conditions: [foreign, ...(first.conditions ?? [])], volumesAttached: [] };
    const { runtime: _r, images: _i, addresses: _a, ...less } = facts;
    const { status } = nodeStatus(before, options, less, at);
    assert.deepEqual(status.conditions?.[0], foreign);
    assert.deepEqual(status.images, first.images);
    assert.deepEqual(status.addresses, first.addresses);
    assert.equal(status.nodeInfo?.containerRuntimeVersion, 'Unknown');
    assert.deepEqual(status.volumesAttached, []);
  });

  it('changed addresses are replaced as a list', () => {
    const addresses = [
      { type: 'InternalIP', address: '10.0.0.2' },
      { type: 'InternalIP', address: 'fd00::2' },
      { type: 'Hostname', address: 'n1' },
    ];
    const patch = nodeStatusPatch(node, { ...node, status: { ...first, addresses } });
    assert.deepEqual(patch, { status: { addresses: [...addresses, { $patch: 'replace' }] } });
  });
});

describe('reconciledNode', () => {
  const { node: initial } = initialNode(options, facts, at);
  const existing: Node = {
    metadata: {
      name: 'n1',
      uid: 'U',
      labels: { 'kubernetes.io/hostname': 'old', mine: 'stays', 'kubernetes.io/os': 'linux' },
      annotations: { other: 'stays', 'alpha.kubernetes.io/provided-node-ip': '9.9.9.9' },
    },
    spec: { taints: [{ key: 't', effect: 'NoExecute' }], providerID: 'keep' },
    status: {
      capacity: { cpu: '4', 'hugepages-1Gi': '1Gi', 'example.com/gpu': '2', 'kubernetes.io/batch': '1' },
      allocatable: { cpu: '4', 'hugepages-1Gi': '1Gi', 'example.com/gpu': '2' },
    },
  };

  it('sets its own labels, annotation and huge pages right and leaves the rest', () => {
    const node = reconciledNode(existing, initial, options, false);
    assert.equal(node.metadata.labels?.['kubernetes.io/hostname'], 'n1');
    assert.equal(node.metadata.labels?.['mine'], 'stays');
    assert.deepEqual(node.metadata.annotations, {
      other: 'stays',
      'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
    });
    assert.deepEqual(node.spec, existing.spec);
    assert.deepEqual(node.status?.capacity, {
      cpu: '4',
      'example.com/gpu': '2',
      'kubernetes.io/batch': '1',
      'hugepages-2Mi': '0',
    });
    const patch = nodeStatusPatch(existing, node) as { status: { capacity: object }; spec?: unknown };
    assert.deepEqual(patch.status.capacity, { 'hugepages-1Gi': null, 'hugepages-2Mi': '0' });
    assert.equal(patch.spec, undefined);
  });

  it('takes the attaching of volumes back from the controller', () => {
    const attach = 'volumes.kubernetes.io/controller-managed-attach-detach';
    const managed: Node = {
      ...existing,
      metadata: { ...existing.metadata, annotations: { [attach]: 'true', o: '1' } },
    };
    const own = { ...options, controllerAttachDetach: false };
    const { node: initial } = initialNode(own, facts, at);
    const node = reconciledNode(managed, initial, own, false);
    assert.deepEqual(node.metadata.annotations, { o: '1' });
    const patch = nodeStatusPatch(managed, node) as { metadata: { annotations: object } };
    assert.deepEqual(patch.metadata.annotations, { [attach]: null });
  });

  it('zeroes extended resources when the device plugins’ state is lost', () => {
    const node = reconciledNode(existing, initial, options, true);
    assert.equal(node.status?.capacity?.['example.com/gpu'], '0');
    assert.equal(node.status?.capacity?.['kubernetes.io/batch'], '1');
  });

  it('needs no patch the second time', () => {
    const node = reconciledNode(existing, initial, options, false);
    assert.deepEqual(nodeStatusPatch(node, reconciledNode(node, initial, options, false)), {});
  });
});

describe('what is told only when there is something to tell', () => {
  const { addresses: _a, runtime: _r, images: _i, ...bare } = facts;
  const rows: readonly [string, Partial<typeof options>, NodeFacts, (node: Node) => unknown, unknown][] = [
    [
      'no annotation without attach and detach',
      { controllerAttachDetach: false },
      facts,
      (n) => n.metadata.annotations,
      undefined,
    ],
    ['no swap without swap', {}, facts, (n) => n.status?.nodeInfo?.swap, undefined],
    ['swap', {}, { ...facts, host: { ...facts.host, swapBytes: 7 } }, (n) => n.status?.nodeInfo?.swap, { capacity: 7 }],
    ['volumes in use', {}, { ...facts, volumesInUse: ['v'] }, (n) => n.status?.volumesInUse, ['v']],
    ['images up to a number', { maxImages: 1 }, facts, (n) => n.status?.images?.length, 1],
    ['all images', { maxImages: -1 }, facts, (n) => n.status?.images?.length, 2],
    [
      'nothing about a runtime that did not answer yet',
      {},
      bare,
      ({ status = {} }) => ['addresses', 'images', 'runtimeHandlers', 'features'].filter((key) => key in status),
      [],
    ],
    [
      'handlers by name, the one without first',
      {},
      { ...bare, runtime: { name: 'r', version: '1', handlers: [{ name: 'b' }, {}, { name: 'a' }] } },
      (n) => n.status?.runtimeHandlers?.map((h) => h.name),
      ['', 'a', 'b'],
    ],
  ];
  for (const [what, otherwise, known, read, expected] of rows)
    it(what, () => assert.deepEqual(read(initialNode({ ...options, ...otherwise }, known, at).node), expected));
});

describe('a Node that somebody made by hand', () => {
  const { node: initial } = initialNode({ ...options, nodeLabels: { 'topology.kubernetes.io/zone': '' } }, facts, at);

  it('gets labels, annotation and huge pages though it had none', () => {
    const node = reconciledNode({ metadata: { name: 'n1' } }, initial, options, true);
    assert.equal(node.metadata.labels?.['kubernetes.io/os'], 'linux');
    assert.deepEqual(Object.keys(node.metadata.annotations ?? {}), [
      'volumes.kubernetes.io/controller-managed-attach-detach',
    ]);
    assert.deepEqual(node.status?.capacity, { 'hugepages-2Mi': '0' });
  });

  it('loses a label of the zone that is configured empty', () => {
    const labels = { 'topology.kubernetes.io/zone': 'z1' };
    const node = reconciledNode({ metadata: { name: 'n1', labels } }, initial, options, false);
    assert.ok(!('topology.kubernetes.io/zone' in (node.metadata.labels ?? {})));
  });

  it('is sent addresses as a plain list the first time', () => {
    const addresses = [{ type: 'Hostname', address: 'n1' }];
    const none: Node = { metadata: { name: 'n1' } };
    const patch = nodeStatusPatch(none, { ...none, status: { addresses } }) as { status: { addresses: object[] } };
    assert.deepEqual(patch.status.addresses, addresses);
  });

  it('has a status that differs from none, whatever the order of its conditions', () => {
    const conditions = [
      { type: 'Ready', status: 'True' as const },
      { type: 'DiskPressure', status: 'False' as const },
    ];
    assert.equal(statusChanged({}, { conditions }), true);
    assert.equal(statusChanged({ conditions: [...conditions].reverse() }, { conditions }), false);
  });
});

it('facts that nobody read yet are a mistake of the caller', () => {
  assert.throws(() => prepared(undefined), /not known yet/);
  assert.equal(prepared(facts), facts);
});

describe('what others change on the node', () => {
  const cloud = [
    { type: 'InternalIP', address: '10.0.0.7' },
    { type: 'ExternalIP', address: '192.0.2.7' },
  ];
  const addresses = (externalCloud: boolean, before: Node['status']): unknown =>
    nodeStatus(before ?? {}, { ...options, externalCloud }, facts, at).status.addresses;

  it('addresses that a cloud set while the facts were read stay', () => {
    assert.deepEqual(addresses(true, { addresses: cloud }), cloud);
    assert.deepEqual(addresses(true, { addresses: [] }), facts.addresses);
    assert.deepEqual(addresses(true, {}), facts.addresses);
    assert.deepEqual(addresses(false, { addresses: cloud }), facts.addresses);
  });

  for (const [name, labels, wrong] of [
    ['no labels', undefined, { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64' }],
    ['right ones', { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64' }, {}],
    ['one changed', { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'x' }, { 'kubernetes.io/arch': 'arm64' }],
    ['one removed', { 'kubernetes.io/arch': 'arm64', a: 'b' }, { 'kubernetes.io/os': 'linux' }],
  ] as const)
    it(`labels of the machine are set right: ${name}`, () => {
      const metadata = { name: 'n1', ...(labels === undefined ? {} : { labels }) };
      assert.deepEqual(wrongMachineLabels({ metadata }, 'arm64'), wrong);
    });
});
