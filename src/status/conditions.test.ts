import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid, sandboxId } from '../core/ids.ts';
import type { ContainerStatus, Pod, PodCondition } from '../core/pod.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { emptySnapshot, type ObservedSandbox } from '../core/snapshot.ts';
import { ownedConditions, type ConditionInput } from './conditions.ts';

const status = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name,
  state: { waiting: {} },
  lastState: {},
  ready: false,
  restartCount: 0,
  image: '',
  imageID: '',
  ...more,
});
const sandbox = (more: Partial<ObservedSandbox> = {}): ObservedSandbox => ({
  id: sandboxId('s'),
  attempt: 0,
  ready: true,
  createdAt: 1n,
  hostNetwork: false,
  ips: ['10.0.0.1'],
  runtimeHandler: '',
  ...more,
});
const podOf = (spec: Partial<Pod['spec']> = {}, more: Partial<Pod> = {}): Pod => ({
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c' }], ...spec },
  ...more,
});
const snapshot = emptySnapshot(podUid('u'), 'p', 'n');
const base: ConditionInput = {
  pod: podOf(),
  phase: 'Pending',
  snapshot,
  init: [],
  main: [status('c')],
  previous: [],
  restartingAll: false,
};

const shown = (more: Partial<ConditionInput>, type: string): string => {
  const found = ownedConditions({ ...base, ...more }).find((c) => c.type === type);
  return found === undefined ? 'none' : [found.status, found.reason, found.message].filter(Boolean).join(' ');
};
const ready = status('c', { ready: true });
const held = (state: PodCondition['status']): PodCondition => ({ type: 'gate', status: state });
const withInit = podOf({ initContainers: [{ name: 'i' }] });
const withSidecar = podOf({ initContainers: [{ name: 's', restartPolicy: 'Always' }] });
const ended = { terminated: { exitCode: 0, startedAt: null, finishedAt: null } };
const gated = podOf({ readinessGates: [{ conditionType: 'gate' }] });
const RULES = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }] as const;
const gang = podOf({ containers: [{ name: 'c', restartPolicy: 'Never', restartPolicyRules: RULES }] });

const rows: readonly [string, string, Partial<ConditionInput>, string][] = [
  ['PodReadyToStartContainers', 'no sandbox', {}, 'False'],
  ['PodReadyToStartContainers', 'its gate is off', { tellsSandbox: false }, 'none'],
  [
    'PodReadyToStartContainers',
    'a sandbox with an address',
    { snapshot: { ...snapshot, sandboxes: [sandbox()] } },
    'True',
  ],
  [
    'PodReadyToStartContainers',
    'a sandbox without an address',
    { snapshot: { ...snapshot, sandboxes: [sandbox({ ips: [] })] } },
    'False',
  ],
  [
    'PodReadyToStartContainers',
    'the network of the host needs none',
    {
      pod: podOf({ hostNetwork: true }),
      snapshot: { ...snapshot, sandboxes: [sandbox({ hostNetwork: true, ips: [] })] },
    },
    'True',
  ],
  [
    'PodReadyToStartContainers',
    'a sandbox with the wrong network',
    { pod: podOf({ hostNetwork: true }), snapshot: { ...snapshot, sandboxes: [sandbox()] } },
    'False',
  ],
  [
    'PodReadyToStartContainers',
    'two that are ready',
    { snapshot: { ...snapshot, sandboxes: [sandbox({ attempt: 1 }), sandbox()] } },
    'False',
  ],
  [
    'PodReadyToStartContainers',
    'the newest is not ready',
    { snapshot: { ...snapshot, sandboxes: [sandbox({ attempt: 1, ready: false }), sandbox()] } },
    'False',
  ],
  ['Initialized', 'nothing to initialise', {}, 'True'],
  ['Initialized', 'the pod is over', { phase: 'Succeeded', pod: withInit }, 'True PodCompleted'],
  ['Initialized', 'not seen', { pod: withInit }, 'False ContainersNotInitialized containers with unknown status: [i]'],
  [
    'Initialized',
    'not done',
    { pod: withInit, init: [status('i')] },
    'False ContainersNotInitialized containers with incomplete status: [i]',
  ],
  ['Initialized', 'done', { pod: withInit, init: [status('i', { ready: true })] }, 'True'],
  [
    'Initialized',
    'stays once true',
    { pod: withInit, init: [status('i')], previous: [{ type: 'Initialized', status: 'True' }] },
    'True',
  ],
  [
    'Initialized',
    'a main container runs',
    { pod: withInit, main: [status('c', { state: { running: { startedAt: 'x' } } })] },
    'True',
  ],
  ['Initialized', 'a main container ended', { pod: withInit, main: [status('c', { state: ended })] }, 'True'],
  [
    'Initialized',
    'a main container ended before',
    { pod: withInit, main: [status('c', { lastState: ended })] },
    'True',
  ],
  ['Initialized', 'a main container started', { pod: withInit, main: [status('c', { started: true })] }, 'True'],
  ['Initialized', 'a sidecar that has started', { pod: withSidecar, init: [status('s', { started: true })] }, 'True'],
  [
    'Initialized',
    'a sidecar that is ready and has not started',
    { pod: withSidecar, init: [status('s', { ready: true })] },
    'False ContainersNotInitialized containers with incomplete status: [s]',
  ],
  ['ContainersReady', 'over, well', { phase: 'Succeeded' }, 'False PodCompleted'],
  ['ContainersReady', 'over, ill', { phase: 'Failed' }, 'False PodFailed'],
  ['ContainersReady', 'nobody knows any', { main: [] }, 'False UnknownContainerStatuses'],
  ['ContainersReady', 'ready', { main: [ready] }, 'True'],
  ['ContainersReady', 'not ready', {}, 'False ContainersNotReady containers with unready status: [c]'],
  [
    'ContainersReady',
    'one unknown, one unready',
    { pod: podOf({ containers: [{ name: 'c' }, { name: 'd' }] }) },
    'False ContainersNotReady containers with unknown status: [d], containers with unready status: [c]',
  ],
  [
    'ContainersReady',
    'sidecars count, other init containers do not',
    { pod: podOf({ initContainers: [{ name: 'i' }, { name: 's', restartPolicy: 'Always' }] }), main: [ready] },
    'False ContainersNotReady containers with unknown status: [s]',
  ],
  ['Ready', 'its containers are not', {}, 'False ContainersNotReady containers with unready status: [c]'],
  ['Ready', 'its containers are', { main: [ready] }, 'True'],
  [
    'Ready',
    'a gate nobody wrote',
    { pod: gated, main: [ready] },
    'False ReadinessGatesNotReady corresponding condition of pod readiness gate "gate" does not exist.',
  ],
  [
    'Ready',
    'a gate that is closed',
    { pod: gated, main: [ready], previous: [held('False')] },
    'False ReadinessGatesNotReady the status of pod readiness gate "gate" is not "True", but False',
  ],
  ['Ready', 'a gate that is open', { pod: gated, main: [ready], previous: [held('True')] }, 'True'],
  [
    'Ready',
    'what the API server has of the gate counts more',
    { pod: { ...gated, status: { conditions: [held('True')] } }, main: [ready], previous: [held('False')] },
    'True',
  ],
  ['PodScheduled', 'always', {}, 'True'],
  ['AllContainersRestarting', 'no such rule', {}, 'none'],
  ['AllContainersRestarting', 'not now', { pod: gang }, 'False'],
  ['AllContainersRestarting', 'over, well', { pod: gang, phase: 'Succeeded' }, 'False PodCompleted'],
  ['AllContainersRestarting', 'over, ill', { pod: gang, phase: 'Failed' }, 'False PodFailed'],
  ['AllContainersRestarting', 'all are removed', { pod: gang, restartingAll: true }, 'False'],
  [
    'AllContainersRestarting',
    'one is still there',
    { pod: gang, restartingAll: true, snapshot: { ...snapshot, containers: [observedContainer('c', {})] } },
    'True RestartAllContainersStarted container exited with restart policy rule',
  ],
];

describe('conditions', () => {
  for (const [type, name, input, expected] of rows)
    it(`${type}: ${name}`, () => assert.equal(shown(input, type), expected));

  for (const [generation, expected] of [
    [undefined, undefined],
    [0, undefined],
    [3, 3],
  ] as const)
    it(`carry the generation ${generation}`, () => {
      const pod = podOf({}, { metadata: { name: 'p', ...(generation === undefined ? {} : { generation }) } });
      for (const condition of ownedConditions({ ...base, pod })) assert.equal(condition.observedGeneration, expected);
    });
});
