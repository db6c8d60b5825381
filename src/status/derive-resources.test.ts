import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod, PodPhase, ResourceRequirements } from '../core/pod.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { derivePodStatus } from './derive.ts';

const sized = (cpu: string, memory: string): ResourceRequirements => ({
  limits: { cpu, memory },
  requests: { cpu, memory },
});
const pod: Pod = {
  metadata: { name: 'p', namespace: 'ns', uid: 'u', generation: 2 },
  spec: { resources: sized('2', '2Gi'), containers: [{ name: 'c' }] },
};

/** The status of the pod above, granted what it asks for, with `inForce` in force for the whole of it. */
const statusOf = (inForce: ResourceRequirements | undefined, state: 'running' | 'created', of = pod): unknown => {
  const { phase, allocatedResources, resources } = derivePodStatus({
    pod: of,
    snapshot: {
      uid: podUid('u'),
      name: 'p',
      namespace: 'ns',
      sandboxes: [],
      ips: [],
      version: 1,
      containers: [observedContainer('c', { state })],
    },
    previous: {},
    readiness: () => ({ ready: true, started: true }),
    hostIPs: [],
    ipFamily: 4,
    terminal: false,
    nowMs: 0,
    runtimeName: 'containerd',
    startErrors: () => undefined,
    terminationMessage: () => '',
    actuated: {
      containers: new Map(inForce === undefined ? [] : [['c', { limits: inForce.limits ?? {} }]]),
      ...(inForce !== undefined && { pod: inForce }),
    },
  });
  return { phase, allocatedResources, resources };
};

test('resources of the pod as a whole: what was granted, and what of it is in force', () => {
  const granted = { cpu: '2', memory: '2Gi' };
  const rows: [ResourceRequirements | undefined, 'running' | 'created', PodPhase, ResourceRequirements][] = [
    [sized('1', '1Gi'), 'running', 'Running', sized('1', '1Gi')],
    [sized('2', '2Gi'), 'running', 'Running', sized('2', '2Gi')],
    [sized('1', '1Gi'), 'created', 'Pending', sized('2', '2Gi')],
    [undefined, 'running', 'Running', sized('2', '2Gi')],
  ];
  for (const [inForce, state, phase, resources] of rows)
    assert.deepEqual(statusOf(inForce, state), { phase, allocatedResources: granted, resources });
});

test('of a pod that runs only what its cgroup has is in force', () => {
  const list = { cpu: '1', memory: '1Gi', 'ephemeral-storage': '1Gi', 'example.com/gpu': '1' };
  const plain: Pod = { ...pod, spec: { containers: [{ name: 'c', resources: { limits: list, requests: list } }] } };
  assert.deepEqual(statusOf(undefined, 'created', plain), {
    phase: 'Pending',
    allocatedResources: list,
    resources: { limits: list, requests: list },
  });
  assert.deepEqual(statusOf(undefined, 'running', plain), {
    phase: 'Running',
    allocatedResources: list,
    resources: sized('1', '1Gi'),
  });
  const pages = { ...sized('2', '2Gi'), limits: { cpu: '2', memory: '2Gi', 'hugepages-2Mi': '4Mi' } };
  const whole: Pod = { ...pod, spec: { resources: pages, containers: [{ name: 'c' }] } };
  assert.deepEqual(statusOf(undefined, 'running', whole), {
    phase: 'Running',
    allocatedResources: { cpu: '2', memory: '2Gi' },
    resources: pages,
  });
});
