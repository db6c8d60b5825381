// The fields of a status that do not come from containers: phase that sticks, deadline, reason, addresses, times.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod, PodStatus } from '../core/pod.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { emptySnapshot } from '../core/snapshot.ts';
import { sameData } from '../lib/same-data.ts';
import { withExplanation } from './explanation.ts';
import { derivePodStatus, type DeriveInput } from './derive.ts';

const STARTED = '2026-01-01T00:00:00Z';
const START_MS = Date.parse(STARTED);
const podOf = (spec: Partial<Pod['spec']> = {}, more: Partial<Pod> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: { containers: [{ name: 'c' }], ...spec },
  ...more,
});
const empty = emptySnapshot(podUid('u'), 'p', 'n');
const running = { ...empty, containers: [observedContainer('c', { id: 'c1' })] };

const ended = (exitCode: number) => ({
  ...empty,
  containers: [observedContainer('c', { id: 'c1', state: 'exited', exitCode })],
});
const evicted = {
  previous: {
    phase: 'Failed',
    reason: 'Evicted',
    message: 'm',
    conditions: [{ type: 'DisruptionTarget', status: 'True' }],
  },
} as const;

const derive = (more: Partial<DeriveInput>): PodStatus =>
  derivePodStatus({
    pod: podOf(),
    snapshot: running,
    previous: {},
    runtimeName: 'r',
    startErrors: () => undefined,
    terminationMessage: () => '',
    actuated: { containers: new Map() },
    readiness: () => ({ ready: true, started: true }),
    hostIPs: [],
    ipFamily: 4,
    terminal: false,
    nowMs: START_MS + 10_000,
    ...more,
  });

const deadline = {
  pod: podOf({ activeDeadlineSeconds: 10 }),
  previous: { phase: 'Running', startTime: STARTED },
} as const;
const EXPLANATION = { reason: 'ImageNotFound', message: 'It is not there.' };
const explained = withExplanation(podOf(), { conditions: [{ type: 'Ready', status: 'False' }] }, EXPLANATION);
const rows: readonly [string, Partial<DeriveInput>, (status: PodStatus) => unknown, unknown][] = [
  ['a final phase stays', { previous: { phase: 'Failed' } }, (s) => s.phase, 'Failed'],
  [
    'what the API server has as final stays too',
    { pod: podOf({}, { status: { phase: 'Succeeded' } }) },
    (s) => s.phase,
    'Succeeded',
  ],
  [
    'evicted, and all containers ended well',
    { ...evicted, snapshot: ended(0), terminal: true },
    (s) => [s.phase, s.reason, s.message, s.conditions?.[0]?.type],
    ['Succeeded', undefined, undefined, 'DisruptionTarget'],
  ],
  [
    'evicted, and a container failed',
    { ...evicted, snapshot: ended(143), terminal: true },
    (s) => [s.phase, s.reason, s.message, s.conditions?.[0]?.type],
    ['Failed', 'Evicted', 'm', 'DisruptionTarget'],
  ],
  [
    'evicted, and the API server shows it as failed',
    { ...evicted, pod: podOf({}, { status: { phase: 'Failed' } }), snapshot: ended(0), terminal: true },
    (s) => [s.phase, s.reason],
    ['Failed', 'Evicted'],
  ],
  [
    'past its deadline, and all containers ended well when they were stopped',
    {
      ...deadline,
      previous: { ...deadline.previous, phase: 'Failed', reason: 'DeadlineExceeded' },
      snapshot: ended(0),
      terminal: true,
    },
    (s) => [s.phase, s.reason],
    ['Failed', 'DeadlineExceeded'],
  ],
  [
    'past its deadline, after all containers had ended well',
    { ...deadline, previous: { ...deadline.previous, phase: 'Succeeded' }, snapshot: ended(0), terminal: true },
    (s) => [s.phase, s.reason],
    ['Succeeded', undefined],
  ],
  ['otherwise it is computed', { pod: podOf({}, { status: { phase: 'Pending' } }) }, (s) => s.phase, 'Running'],
  ['a deadline that has passed', deadline, (s) => [s.phase, s.reason], ['Failed', 'DeadlineExceeded']],
  ['a deadline to come', { ...deadline, nowMs: START_MS + 9999 }, (s) => [s.phase, s.reason], ['Running', undefined]],
  ['a deadline of a pod that was never started', { pod: deadline.pod }, (s) => s.phase, 'Running'],
  [
    'a deadline of a pod that was over before keeps its reason',
    { pod: deadline.pod, previous: { phase: 'Failed', reason: 'Evicted', message: 'm', startTime: STARTED } },
    (s) => [s.reason, s.message],
    ['Evicted', 'm'],
  ],
  ['a reason goes with its phase', { previous: { phase: 'Pending', reason: 'R' } }, (s) => s.reason, undefined],
  ['a reason stays with its phase', { previous: { phase: 'Running', reason: 'R' } }, (s) => s.reason, 'R'],
  [
    'a reason that others gave it stays with its phase',
    { previous: { phase: 'Running' }, pod: podOf({}, { status: { phase: 'Running', reason: 'R', message: 'm' } }) },
    (s) => [s.reason, s.message],
    ['R', 'm'],
  ],
  ['no address', {}, (s) => [s.podIP, s.podIPs, s.hostIP], [undefined, undefined, undefined]],
  [
    'addresses of the pod, one of each family, that of --node-ip first',
    {
      snapshot: { ...running, ips: ['10.0.0.1', '10.0.0.2', 'fd00::1'] },
      hostIPs: ['fd00::9', '192.0.2.1'],
      ipFamily: 6,
    },
    (s) => [s.podIP, s.podIPs, s.hostIP, s.hostIPs],
    ['fd00::1', [{ ip: 'fd00::1' }, { ip: '10.0.0.1' }], 'fd00::9', [{ ip: 'fd00::9' }, { ip: '192.0.2.1' }]],
  ],
  [
    'addresses of the pod without --node-ip, on a node that a cloud gave an IPv6 address first',
    { snapshot: { ...running, ips: ['fd00::1', '10.0.0.1'] }, hostIPs: ['fd00::9', '192.0.2.1'] },
    (s) => [s.podIP, s.podIPs, s.hostIP],
    ['10.0.0.1', [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }], 'fd00::9'],
  ],
  [
    'one family',
    { snapshot: { ...running, ips: ['10.0.0.1'] }, hostIPs: ['192.0.2.1'] },
    (s) => s.podIPs,
    [{ ip: '10.0.0.1' }],
  ],
  [
    'on the network of the host',
    { pod: podOf({ hostNetwork: true }), snapshot: { ...running, ips: ['10.0.0.1'] }, hostIPs: ['192.0.2.1'] },
    (s) => s.podIPs,
    [{ ip: '192.0.2.1' }],
  ],
  ['addresses that were known stay', { previous: { podIPs: [{ ip: '10.0.0.7' }] } }, (s) => s.podIP, '10.0.0.7'],
  ['the start', { previous: { startTime: STARTED } }, (s) => s.startTime, STARTED],
  ['no start yet', {}, (s) => 'startTime' in s, false],
  [
    'resources of the pod as a whole, not with their gate off',
    { pod: podOf({ resources: { requests: { cpu: '1' } } }), tellsPodResources: false },
    (s) => ['allocatedResources' in s, 'resources' in s, s.phase],
    [false, false, 'Running'],
  ],
  ['no generation', {}, (s) => s.observedGeneration, undefined],
  [
    'its generation',
    { pod: podOf({}, { metadata: { name: 'p', namespace: 'n', uid: 'u', generation: 4 } }) },
    (s) => s.observedGeneration,
    4,
  ],
  [
    'conditions of others stay in front, resizes too, ours are made anew',
    {
      previous: {
        conditions: [
          { type: 'mine', status: 'True' },
          { type: 'PodResizePending', status: 'True' },
          { type: 'Ready', status: 'False' },
        ],
      },
    },
    (s) => s.conditions?.map((c) => `${c.type} ${c.status}`).slice(0, 5),
    ['mine True', 'PodResizePending True', 'PodReadyToStartContainers False', 'Initialized True', 'Ready True'],
  ],
  [
    'why the pod is not ready stays, in the same place',
    { readiness: () => ({ ready: false, started: true }), previous: explained },
    (s) =>
      sameData(
        s.conditions,
        derive({
          readiness: () => ({ ready: false, started: true }),
          previous: withExplanation(podOf(), s, EXPLANATION),
        }).conditions,
      ),
    true,
  ],
  [
    'each kind of container has its list',
    {
      pod: podOf({
        initContainers: [{ name: 'i' }, { name: 's', restartPolicy: 'Always' }],
        ephemeralContainers: [{ name: 'e' }],
      }),
    },
    (s) => [
      s.initContainerStatuses?.map((c) => `${c.name} ${c.ready}`),
      s.ephemeralContainerStatuses?.map((c) => c.name),
    ],
    [['i true', 's true'], ['e']],
  ],
  [
    'an init container that did not end well is not ready',
    {
      pod: podOf({ initContainers: [{ name: 'i' }] }),
      snapshot: { ...empty, containers: [observedContainer('i', { id: 'i1', state: 'exited', exitCode: 1 })] },
    },
    (s) => s.initContainerStatuses?.[0]?.ready,
    false,
  ],
];

describe('a status', () => {
  for (const [name, input, read, expected] of rows) it(name, () => assert.deepEqual(read(derive(input)), expected));
});
