import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../core/pod.ts';
import { KubeletError } from '../../lib/errors.ts';
import { ManualClock } from '../../lib/manual-clock.ts';
import { Registry } from '../../lib/metrics.ts';
import { alignmentMetrics } from '../cpu/cpu-metrics.ts';
import { podOfVector } from '../vectors.fixture.ts';
import type { HintProvider, HintsByResource, TopologyHint } from './hint-provider.ts';
import { mergeHints } from './merge.ts';
import { TopologyManager, topologyMetrics } from './topology-manager.ts';
import { topologySettings } from './topology-options.ts';

const NODES = [0, 1].map((id) => ({ id, memoryBytes: 0, hugePages: [], distances: [10, 20], cores: [] }));
const signal = new AbortController().signal;

const POD: Pod = podOfVector({
  uid: 'p',
  qos: 'Guaranteed',
  containers: [
    { name: 'init', kind: 'init', cpu: '1' },
    { name: 'main', kind: 'main', cpu: '1' },
  ],
});

function setup(
  o: { policy: string; scope?: string; hints?: HintsByResource; fails?: Error; podLevelManagers?: boolean },
  options: Readonly<Record<string, string>> = {},
) {
  const calls: string[] = [];
  const provider = (name: string): HintProvider => ({
    name,
    hints: () => o.hints ?? {},
    podHints: () => o.hints ?? {},
    allocate: (_, container, { numaNodes, preferred }) => {
      calls.push(`${name} ${container.name} ${numaNodes?.join() ?? 'any'} ${preferred}`);
      return o.fails === undefined ? Promise.resolve() : Promise.reject(o.fails);
    },
    ...(name === 'cpu' && {
      allocatePod: (_: Pod, { numaNodes }: { numaNodes: readonly number[] | undefined }) => {
        calls.push(`${name} pod ${numaNodes?.join() ?? 'any'}`);
        return Promise.resolve();
      },
    }),
  });
  const registry = new Registry();
  const manager = new TopologyManager(
    {
      providers: [provider('device'), provider('cpu')],
      clock: new ManualClock(),
      metrics: topologyMetrics(registry, alignmentMetrics(registry)),
    },
    {
      ...topologySettings({ policy: o.policy, scope: o.scope ?? 'container', options }, NODES),
      podLevelManagers: o.podLevelManagers ?? false,
    },
  );
  return { manager, calls, registry };
}

const ON_ONE = { cpu: [{ numaNodes: [1], preferred: true }] };

test('policy none allocates container by container without a hint', async () => {
  const { manager, calls } = setup({ policy: 'none', hints: ON_ONE });
  assert.equal(await manager.admit(POD, signal), undefined);
  assert.deepEqual(calls, [
    'device init any false',
    'cpu init any false',
    'device main any false',
    'cpu main any false',
  ]);
});

test('every provider allocates near the merged hint', async () => {
  for (const scope of ['container', 'pod']) {
    const { manager, calls, registry } = setup({ policy: 'single-numa-node', scope, hints: ON_ONE });
    assert.equal(await manager.admit(POD, signal), undefined);
    assert.deepEqual(calls, ['device init 1 true', 'cpu init 1 true', 'device main 1 true', 'cpu main 1 true']);
    const count = scope === 'pod' ? 1 : 2;
    assert.match(
      registry.render(),
      new RegExp(
        `kubelet_container_aligned_compute_resources_count\\{boundary="numa_node",scope="${scope}"\\} ${count}\\n`,
      ),
    );
  }
});

test('what cannot be aligned is rejected by restricted and taken by best-effort', async () => {
  const nowhere = { cpu: [] };
  const strict = setup({ policy: 'restricted', hints: nowhere });
  assert.deepEqual(await strict.manager.admit(POD, signal), {
    reason: 'TopologyAffinityError',
    message: 'Resources cannot be allocated with Topology locality',
  });
  assert.deepEqual(strict.calls, []);
  assert.match(strict.registry.render(), /kubelet_topology_manager_admission_errors_total 1\n/);
  assert.equal(await setup({ policy: 'best-effort', hints: nowhere }).manager.admit(POD, signal), undefined);
});

test('a failing allocation rejects the pod, with its own reason where it has one', async () => {
  const typed = new KubeletError('exhausted', 'SMT Alignment Error: x', { detail: { reason: 'SMTAlignmentError' } });
  assert.deepEqual(await setup({ policy: 'none', fails: typed }).manager.admit(POD, signal), {
    reason: 'SMTAlignmentError',
    message: 'SMT Alignment Error: x',
  });
  assert.deepEqual(await setup({ policy: 'none', fails: new Error('boom') }).manager.admit(POD, signal), {
    reason: 'UnexpectedAdmissionError',
    message: 'Allocate failed due to boom, which is unexpected',
  });
});

test('a pod with resources of its own is allocated as a whole where the provider can', async () => {
  const pod: Pod = { ...POD, spec: { ...POD.spec, resources: { requests: { cpu: '2' }, limits: { cpu: '2' } } } };
  const whole = setup({ policy: 'restricted', scope: 'pod', hints: ON_ONE, podLevelManagers: true });
  assert.equal(await whole.manager.admit(pod, signal), undefined);
  assert.deepEqual(whole.calls, ['device init 1 true', 'device main 1 true', 'cpu pod 1']);
  const rejected = setup({ policy: 'restricted', scope: 'pod', hints: { cpu: [] }, podLevelManagers: true });
  assert.equal(
    (await rejected.manager.admit(pod, signal))?.message,
    'Pod Scope pod with pod-level resources failed admission under pod-scope topology manager',
  );
});

const BAD_SETTINGS: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
  ['restricted', { nope: 'true' }, 'unknown Topology Manager Policy option: "nope"'],
  [
    'restricted',
    { 'prefer-closest-numa-nodes': 'maybe' },
    'bad value for option "prefer-closest-numa-nodes": strconv.ParseBool: parsing "maybe": invalid syntax',
  ],
  [
    'restricted',
    { 'max-allowable-numa-nodes': 'x' },
    'unable to convert policy option to integer "max-allowable-numa-nodes": strconv.Atoi: parsing "x": invalid syntax',
  ],
  [
    'restricted',
    { 'max-allowable-numa-nodes': '7' },
    'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
  ],
  ['worst-effort', {}, 'unknown policy: "worst-effort"'],
];

for (const [policy, options, message] of BAD_SETTINGS)
  test(`refused: ${message}`, () => {
    assert.throws(() => topologySettings({ policy, scope: 'container', options }, NODES), { message });
  });

test('machines with many nodes or without distances', () => {
  const many = Array.from({ length: 9 }, (_, id) => ({ id, memoryBytes: 0, hugePages: [], distances: [], cores: [] }));
  const settings =
    (options: Readonly<Record<string, string>>, policy = 'restricted') =>
    () =>
      topologySettings({ policy, scope: 'container', options }, many);
  assert.throws(settings({}), { message: 'unsupported on machines with more than 8 NUMA Nodes' });
  assert.doesNotThrow(settings({ 'max-allowable-numa-nodes': '9' }));
  assert.doesNotThrow(settings({ nope: 'ignored' }, 'none'));
  assert.throws(settings({ 'prefer-closest-numa-nodes': 'true' }), {
    message: 'cannot discover NUMA topology: error getting NUMA distances from cadvisor',
  });
});

test('nodes beyond the 32nd count like any other', () => {
  const nodes = Array.from({ length: 40 }, (_, id) => id);
  const at = (...numaNodes: number[]): TopologyHint => ({ numaNodes, preferred: true });
  const providers = [{ cpu: [at(3), at(33)] }, { memory: [at(33), at(35)] }];
  assert.deepEqual(mergeHints(providers, { policy: 'restricted', nodes, distances: undefined }), {
    hint: at(33),
    admit: true,
  });
  const settings = topologySettings(
    { policy: 'restricted', scope: 'container', options: { 'max-allowable-numa-nodes': '64' } },
    nodes.map((id) => ({ id, memoryBytes: 0, hugePages: [], distances: [], cores: [] })),
  );
  assert.equal(settings.merge.nodes.length, 40);
});
