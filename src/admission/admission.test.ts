import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../core/node.ts';
import { CONFIG_SOURCE, type Container, type Pod } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { PodAdmission, type PodAdmissionDeps, type PodAdmissionOptions } from './pod-admission.ts';
import { rejectionLabel } from './rejection-label.ts';
import { SysctlAllowlist } from './sysctls.ts';
import type { AdmissionVerdict } from './verdict.ts';

const NODE: Node = {
  metadata: { name: 'n1', labels: { zone: 'a' } },
  status: { allocatable: { cpu: '2', memory: '4Gi', pods: '3', 'ephemeral-storage': '10Gi', 'example.com/gpu': '1' } },
};

type Extra = { spec?: Partial<Pod['spec']>; metadata?: Partial<Pod['metadata']>; status?: Pod['status'] };
const pod = (name: string, requests: Record<string, string> = {}, extra: Extra = {}): Pod => ({
  metadata: { name, uid: name, ...extra.metadata },
  spec: { containers: [{ name: 'c', resources: { requests } }], ...extra.spec },
  ...(extra.status !== undefined && { status: extra.status }),
});
const withContainer = (c: Partial<Container>): Extra => ({ spec: { containers: [{ name: 'c', ...c }] } });
const critical = { spec: { priority: 2_000_000_000 } };
const isStatic = { metadata: { annotations: { [CONFIG_SOURCE]: 'file' } } };

type Given = {
  others?: readonly Pod[];
  node?: Node | undefined;
  fresh?: Node;
  deps?: Partial<PodAdmissionDeps>;
  options?: Partial<PodAdmissionOptions>;
};

function admit(p: Pod, given: Given = {}): Promise<AdmissionVerdict> {
  const node = 'node' in given ? given.node : NODE;
  return new PodAdmission(
    {
      node: { node: () => node, fresh: () => Promise.resolve(given.fresh ?? node) },
      hooks: { admit: () => Promise.resolve({ ok: true }) },
      sysctls: new SysctlAllowlist([], '6.1.0'),
      nodeConditions: () => [],
      shuttingDown: () => false,
      isRunning: () => false,
      unsupportedVolume: () => undefined,
      evict: () => Promise.resolve(),
      clock: new ManualClock(),
      log: silentLogger,
      ...given.deps,
    },
    { podLevelResources: true, declaredFeatures: () => [], appArmorProblem: undefined, ...given.options },
  ).admit(p, given.others ?? [], new AbortController().signal);
}

const AFFINITY = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
const TAINT = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
const PORTS = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
const tainted: Node = { ...NODE, spec: { taints: [{ key: 'k', effect: 'NoExecute' }] } };
const port = (hostPort: number, more: object = {}): Extra =>
  withContainer({ ports: [{ containerPort: 80, hostPort, ...more }] });
const pressure = (...conditions: string[]): Given => ({ deps: { nodeConditions: () => conditions } });
const sysctl = (name: string, spec: Partial<Pod['spec']> = {}): Pod =>
  pod('p', {}, { spec: { containers: [], ...spec, securityContext: { sysctls: [{ name, value: '1' }] } } });

const leaving = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } };

const REJECTED: [name: string, pod: Pod, given: Given, reason: string, message: string][] = [
  [
    'the recorded pod that wants 64 processors',
    pod('p', { cpu: '64' }),
    {},
    'OutOfcpu',
    "Node didn't have enough resource: cpu, requested: 64000, used: 0, capacity: 2000",
  ],
  [
    'the recorded pod for another node',
    pod('p', {}, { spec: { nodeSelector: { disk: 'ssd' } } }),
    {},
    'NodeAffinity',
    AFFINITY,
  ],
  [
    'the recorded pod with a sysctl',
    sysctl('kernel.msgmax'),
    {},
    'SysctlForbidden',
    'forbidden sysctl: "kernel.msgmax" not allowlisted',
  ],
  [
    'memory beside others',
    pod('p', { memory: '3Gi' }),
    { others: [pod('q', { memory: '2Gi' })] },
    'OutOfmemory',
    "Node didn't have enough resource: memory, requested: 3221225472, used: 2147483648, capacity: 4294967296",
  ],
  [
    'processors that a pod still has which is being deleted',
    pod('p', { cpu: '2' }),
    { others: [pod('q', { cpu: '1' }, leaving)] },
    'OutOfcpu',
    "Node didn't have enough resource: cpu, requested: 2000, used: 1000, capacity: 2000",
  ],
  [
    'a pod that runs already, on a node that has less than before',
    pod('p', { cpu: '2' }),
    { others: [pod('q', { cpu: '1' })], deps: { isRunning: () => true } },
    'OutOfcpu',
    "Node didn't have enough resource: cpu, requested: 2000, used: 1000, capacity: 2000",
  ],
  [
    'one pod too many, even if it asks for nothing',
    pod('p'),
    { others: [pod('a'), pod('b'), pod('c')] },
    'OutOfpods',
    "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
  ],
  [
    'an extended resource',
    pod('p', { 'example.com/gpu': '1' }),
    { others: [pod('q', { 'example.com/gpu': '1' })] },
    'OutOfexample.com/gpu',
    "Node didn't have enough resource: example.com/gpu, requested: 1, used: 1, capacity: 1",
  ],
  [
    'huge pages the node lacks',
    pod('p', { 'hugepages-2Mi': '2Mi' }),
    {},
    'OutOfhugepages-2Mi',
    "Node didn't have enough resource: hugepages-2Mi, requested: 2097152, used: 0, capacity: 0",
  ],
  [
    'ephemeral storage',
    pod('p', { 'ephemeral-storage': '11Gi' }),
    {},
    'OutOfephemeral-storage',
    "Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, capacity: 10737418240",
  ],
  [
    'resources come before affinity',
    pod(
      'p',
      { cpu: '3' },
      { spec: { containers: [{ name: 'c', resources: { requests: { cpu: '3' } } }], nodeSelector: { x: 'y' } } },
    ),
    {},
    'OutOfcpu',
    "Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000",
  ],
  [
    'another node by name',
    pod('p', {}, { spec: { nodeName: 'n2' } }),
    {},
    'NodeName',
    "Predicate NodeName failed: node(s) didn't match the requested node name",
  ],
  ['a taken port', pod('p', {}, port(80)), { others: [pod('q', {}, port(80))] }, 'NodePorts', PORTS],
  [
    'a port taken on all addresses',
    pod('p', {}, port(80, { hostIP: '10.0.0.1' })),
    { others: [pod('q', {}, port(80))] },
    'NodePorts',
    PORTS,
  ],
  ['a taint', pod('p'), { node: tainted }, 'TaintToleration', TAINT],
  ['an unknown node', pod('p'), { node: undefined }, 'InvalidNodeInfo', 'Kubelet cannot get node info.'],
  [
    'an operating system label',
    pod('p', {}, { metadata: { labels: { 'kubernetes.io/os': 'windows' } } }),
    {},
    'PodOSSelectorNodeLabelDoesNotMatch',
    "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
  ],
  [
    'an operating system',
    pod('p', {}, { spec: { os: { name: 'windows' } } }),
    {},
    'PodOSNotSupported',
    "Failed to admit pod as the OS field doesn't match node OS",
  ],
  [
    'strict groups',
    pod('p', {}, { spec: { securityContext: { supplementalGroupsPolicy: 'Strict' } } }),
    {},
    'SupplementalGroupsPolicyNotSupported',
    'SupplementalGroupsPolicy=Strict is not supported in this node',
  ],
  [
    'disk pressure',
    pod('p', { cpu: '1' }),
    pressure('DiskPressure'),
    'Evicted',
    'The node had condition: [DiskPressure]. ',
  ],
  [
    'two pressures',
    pod('p', { cpu: '1' }),
    pressure('MemoryPressure', 'PIDPressure'),
    'Evicted',
    'The node had condition: [MemoryPressure PIDPressure]. ',
  ],
  [
    'memory pressure, best effort',
    pod('p'),
    pressure('MemoryPressure'),
    'Evicted',
    'The node had condition: [MemoryPressure]. ',
  ],
  [
    'a network sysctl in the host network',
    sysctl('net.ipv4.tcp_syncookies', { hostNetwork: true }),
    {},
    'SysctlForbidden',
    'forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled',
  ],
  [
    'a sysctl in the other notation, shown as the kernel knows it',
    sysctl('net/ipv4/conf/eno2.100/rp_filter'),
    {},
    'SysctlForbidden',
    'forbidden sysctl: "net.ipv4.conf.eno2/100.rp_filter" not allowlisted',
  ],
  [
    'an IPC sysctl in the host IPC namespace',
    sysctl('kernel.shm_rmid_forced', { hostIPC: true }),
    {},
    'SysctlForbidden',
    'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled',
  ],
  [
    'a hook',
    pod('p'),
    {
      deps: {
        hooks: {
          admit: () =>
            Promise.resolve({
              ok: false,
              reason: 'TopologyAffinityError',
              message: 'Resources cannot be allocated with Topology locality',
            }),
        },
      },
    },
    'TopologyAffinityError',
    'Resources cannot be allocated with Topology locality',
  ],
  [
    'AppArmor where there is none',
    pod('p', {}, withContainer({ securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } })),
    { options: { appArmorProblem: 'AppArmor is not enabled on the host' } },
    'AppArmor',
    'Cannot enforce AppArmor: AppArmor is not enabled on the host',
  ],
  [
    'an odd AppArmor annotation',
    pod('p', {}, { metadata: { annotations: { 'container.apparmor.security.beta.kubernetes.io/c': 'what' } } }),
    {},
    'AppArmor',
    'Cannot enforce AppArmor: invalid AppArmor profile name: "what"',
  ],
  [
    'pod level resources switched off',
    pod('p', {}, { spec: { resources: { limits: { cpu: '1' } } } }),
    { options: { podLevelResources: false } },
    'PodLevelResourcesNotSupported',
    'PodLevelResources feature gate is disabled',
  ],
  [
    'features the node did not declare',
    pod(
      'p',
      {},
      {
        spec: {
          containers: [{ name: 'c', restartPolicyRules: [{ action: 'RestartAllContainers' }] }],
          hostNetwork: true,
          hostUsers: false,
        },
      },
    ),
    {},
    'PodFeatureUnsupported',
    'Pod requires node features that are not available: RestartAllContainersOnContainerExits, UserNamespacesHostNetworkSupport',
  ],
  [
    'shutdown',
    pod('p'),
    { deps: { shuttingDown: () => true } },
    'NodeShutdown',
    'Pod was rejected as the node is shutting down.',
  ],
  [
    'a critical pod in the wrong place is not helped by evictions',
    pod('p', { cpu: '3' }, { spec: { ...critical.spec, nodeSelector: { x: 'y' } } }),
    {},
    'NodeAffinity',
    AFFINITY,
  ],
  [
    'a critical pod that nothing can make room for',
    pod('p', { cpu: '64' }, isStatic),
    {},
    'UnexpectedAdmissionError',
    'Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 62000), ]',
  ],
];

for (const [name, p, given, reason, message] of REJECTED)
  test(`rejected: ${name}`, async () => {
    assert.deepEqual(await admit(p, given), { ok: false, reason, message });
  });

const ADMITTED: [name: string, pod: Pod, given: Given][] = [
  ['a plain pod', pod('p', { cpu: '2', memory: '4Gi' }), {}],
  ['an extended resource this node has never heard of', pod('p', { 'example.com/fpga': '9' }), {}],
  [
    'the same port on other addresses',
    pod('p', {}, port(80, { hostIP: '10.0.0.1' })),
    { others: [pod('q', {}, port(80, { hostIP: '10.0.0.2' }))] },
  ],
  [
    'the same port for another protocol',
    pod('p', {}, port(80, { protocol: 'UDP' })),
    { others: [pod('q', {}, port(80))] },
  ],
  ['a static pod on a tainted node', pod('p', {}, isStatic), { node: tainted }],
  ['a tolerated taint', pod('p', {}, { spec: { tolerations: [{ operator: 'Exists' }] } }), { node: tainted }],
  [
    'a taint that only stops scheduling',
    pod('p'),
    { node: { ...NODE, spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } } },
  ],
  ['a critical pod under pressure', pod('p', {}, critical), pressure('DiskPressure')],
  [
    'a pod that runs already, seen by a new agent under pressure',
    pod('p'),
    { deps: { nodeConditions: () => ['DiskPressure', 'MemoryPressure'], isRunning: () => true } },
  ],
  [
    'a pod that runs already, beside one that is being deleted',
    pod('p', { cpu: '2' }),
    { others: [pod('q', { cpu: '1' }, leaving)], deps: { isRunning: () => true } },
  ],
  [
    'a pod that runs already, by a node object that tells of no capacity',
    pod('p', { cpu: '1' }),
    { node: { metadata: { name: 'n1' } }, deps: { isRunning: () => true } },
  ],
  ['memory pressure, burstable', pod('p', { cpu: '1' }), pressure('MemoryPressure')],
  [
    'memory pressure, tolerated',
    pod('p', {}, { spec: { tolerations: [{ key: 'node.kubernetes.io/memory-pressure', operator: 'Exists' }] } }),
    pressure('MemoryPressure'),
  ],
  ['a safe sysctl', sysctl('net.ipv4.tcp_rmem'), {}],
  ['a safe sysctl in the other notation', sysctl('net/ipv4/tcp_rmem'), {}],
  [
    'AppArmor for a pod that runs already',
    pod(
      'p',
      {},
      {
        ...withContainer({ securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } }),
        status: { phase: 'Running' },
      },
    ),
    { options: { appArmorProblem: 'no' } },
  ],
  [
    'unconfined needs no AppArmor',
    pod('p', {}, withContainer({ securityContext: { appArmorProfile: { type: 'Unconfined' } } })),
    { options: { appArmorProblem: 'no' } },
  ],
  [
    'a label that has just been set on the node',
    pod('p', {}, { spec: { nodeSelector: { disk: 'ssd' } } }),
    { fresh: { ...NODE, metadata: { name: 'n1', labels: { disk: 'ssd' } } } },
  ],
  [
    'declared features',
    pod('p', {}, withContainer({ restartPolicyRules: [{ action: 'RestartAllContainers' }] })),
    { options: { declaredFeatures: () => ['RestartAllContainersOnContainerExits'] } },
  ],
];

for (const [name, p, given] of ADMITTED)
  test(`admitted: ${name}`, async () => {
    assert.deepEqual(await admit(p, given), { ok: true, victims: [] });
  });

test('evictions for a critical pod are counted by what they free', async () => {
  const preemptions = new Registry().counter('p', '', ['preemption_signal']);
  const others = [pod('a', { cpu: '1' }), pod('b', { cpu: '1' })];
  const verdict = await admit(pod('p', { cpu: '2' }, isStatic), { others, deps: { preemptions } });
  assert.ok(verdict.ok);
  assert.deepEqual(
    [verdict.victims.length, verdict.scarce, preemptions.value({ preemption_signal: 'cpu' })],
    [2, 'cpu', 2],
  );
});

test('a node that cannot be read again is judged by what is known', async () => {
  const p = pod('p', {}, { spec: { nodeSelector: { disk: 'ssd' } } });
  const node = { node: () => NODE, fresh: () => Promise.reject(new Error('no API server')) };
  assert.deepEqual(await admit(p, { deps: { node } }), { ok: false, reason: 'NodeAffinity', message: AFFINITY });
});

test('sysctls depend on the kernel and on what the operator allowed', () => {
  const allowed = (name: string, patterns: string[], kernel: string): boolean =>
    new SysctlAllowlist(patterns, kernel).check(sysctl(name)) === undefined;
  assert.equal(allowed('net.ipv4.tcp_rmem', [], '4.14.300'), false);
  assert.equal(allowed('net.ipv4.tcp_rmem', [], '4.15'), true);
  assert.equal(allowed('net.ipv4.tcp_fin_timeout', [], '4.5.9-x'), false);
  assert.equal(allowed('kernel.msgmax', ['kernel.msg*'], '6.1'), true);
  assert.equal(allowed('kernel.sem', ['kernel.sem'], '6.1'), true);
  assert.equal(allowed('net.core.somaxconn', ['net/core/somaxconn'], '6.1'), true);
  assert.equal(allowed('kernel.shmmax', ['kernel.msg*'], '6.1'), false);
  assert.throws(() => new SysctlAllowlist(['vm.swappiness'], '6.1'), /not known to be namespaced/);
});

test('rejections are counted', async () => {
  const registry = new Registry();
  const rejections = registry.counter('kubelet_admission_rejections_total', 'help', ['reason']);
  await admit(pod('p', { cpu: '64' }), { deps: { rejections } });
  assert.equal(rejections.value({ reason: 'OutOfcpu' }), 1);
  await admit(pod('p'), { deps: { rejections, unsupportedVolume: () => 'none such' } });
  assert.equal(rejections.value({ reason: 'Other' }), 1);
});

test('rejections are counted under reasons of a closed list', () => {
  const rows: readonly (readonly [reason: string, label: string])[] = [
    ['OutOfcpu', 'OutOfcpu'],
    ['OutOfephemeral-storage', 'OutOfephemeral-storage'],
    ['OutOfexample.com/gpu', 'OutOfExtendedResources'],
    ['OutOfhugepages-2Mi', 'OutOfExtendedResources'],
    ['TopologyAffinityError', 'TopologyAffinityError'],
    ['VolumeAttachmentLimitExceeded', 'VolumeAttachmentLimitExceeded'],
    ['NodeAffinity', 'Other'],
    ['NodePorts', 'Other'],
    ['UnsupportedVolume', 'Other'],
    ['constructor', 'Other'],
  ];
  for (const [reason, label] of rows) assert.equal(rejectionLabel(reason), label, reason);
});
