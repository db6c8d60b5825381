import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { ContainerStatus, Pod, PodStatus } from '../core/pod.ts';
import type { Actuated } from '../core/pod-resources.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { emptySnapshot, type ObservedContainer } from '../core/snapshot.ts';
import { derivePodStatus } from './derive.ts';

const RULES = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }] as const;
const gang: Pod = {
  metadata: { name: 'p', namespace: 'n', uid: 'u', generation: 1 },
  spec: {
    restartPolicy: 'Never',
    initContainers: [{ name: 'i' }],
    containers: [{ name: 'm', restartPolicy: 'Never', restartPolicyRules: RULES }, { name: 'o' }],
  },
};
const single: Pod = { metadata: gang.metadata, spec: { containers: [{ name: 'c' }] } };

const seen = (name: string, id: string, more: Partial<ObservedContainer>, restarts = 0): ObservedContainer =>
  observedContainer(name, {
    id,
    exitCode: 0,
    ...more,
    annotations: { 'io.kubernetes.container.restartCount': String(restarts) },
  });

function derive(
  pod: Pod,
  containers: readonly ObservedContainer[],
  previous: PodStatus,
  error?: string,
  actuated: Actuated = { containers: new Map() },
): PodStatus {
  return derivePodStatus({
    pod,
    snapshot: { ...emptySnapshot(podUid('u'), 'p', 'n'), containers },
    previous,
    runtimeName: 'r',
    startErrors: () => (error === undefined ? undefined : { reason: error, message: '' }),
    terminationMessage: () => '',
    actuated,
    readiness: () => ({ ready: false, started: false }),
    hostIPs: [],
    ipFamily: 4,
    terminal: false,
    nowMs: 0,
  });
}

const brief = ({ name, state, lastState, restartCount }: ContainerStatus): string => {
  const of = (s: ContainerStatus['state']): string =>
    s.running !== undefined
      ? 'running'
      : s.terminated !== undefined
        ? `${s.terminated.reason ?? ''} ${s.terminated.exitCode} ${s.terminated.containerID ?? ''}`.trim()
        : (s.waiting?.reason ?? '');
  return `${name}: ${of(state)}; last: ${of(lastState)}; ${restartCount}`;
};
const briefly = (status: PodStatus): string[] =>
  [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].map(brief);
const restarting = (status: PodStatus) => status.conditions?.find((c) => c.type === 'AllContainersRestarting');

describe('resources of the pod', () => {
  const asked = { requests: { cpu: '1', memory: '1024Ki' }, limits: { memory: '1Mi' } };
  const less = { requests: { cpu: '0.5', memory: '1Mi' }, limits: { memory: '1Mi' } };
  const pod: Pod = { ...single, spec: { containers: [{ name: 'c', resources: asked }] } };
  const running = [seen('c', '1', { state: 'running' })];
  const rows: [what: string, inForce: Actuated, cpu: string][] = [
    ['nothing is known to be in force', { containers: new Map() }, '1'],
    ['what is asked for is in force', { containers: new Map([['c', { ...asked }]]) }, '1'],
    ['less is in force', { containers: new Map([['c', less]]) }, '500m'],
    ['what is asked for is in force again', { containers: new Map([['c', asked]]) }, '1'],
    ['something is in force for the pod as a whole', { containers: new Map([['c', asked]]), pod: less }, '500m'],
  ];
  for (const [what, inForce, cpu] of rows)
    it(`${what}`, () => {
      const { allocatedResources, resources } = derive(pod, running, {}, undefined, inForce);
      assert.deepEqual(allocatedResources, { cpu: '1', memory: '1Mi' });
      assert.deepEqual(resources, { limits: { memory: '1Mi' }, requests: { cpu, memory: '1Mi' } });
    });
});

describe('a rule has all containers start over', () => {
  it('is told by a condition until all are removed, and by each container from then on', () => {
    const done = seen('i', 'i1', { state: 'exited' });
    const running = seen('o', 'o1', { state: 'running' });
    let status = derive(gang, [done, seen('m', 'm1', { state: 'running' }), running], {});
    assert.deepEqual(restarting(status), { type: 'AllContainersRestarting', status: 'False', lastProbeTime: null });

    const trigger = seen('m', 'm1', { state: 'exited', exitCode: 42, reason: 'Error' });
    status = derive(gang, [done, trigger, running], status);
    assert.deepEqual(restarting(status), {
      type: 'AllContainersRestarting',
      status: 'True',
      reason: 'RestartAllContainersStarted',
      message: 'container exited with restart policy rule',
      lastProbeTime: null,
    });
    assert.equal(status.phase, 'Running');

    status = derive(gang, [done, trigger], status);
    assert.equal(restarting(status)?.status, 'True');
    assert.equal(briefly(status)[2], 'o: RestartingAllContainers; last: RestartingAllContainers 137; 1');

    status = derive(gang, [], status);
    assert.equal(restarting(status)?.status, 'False');
    assert.deepEqual(briefly(status), [
      'i: RestartingAllContainers; last: RestartingAllContainers 137; 1',
      'm: RestartingAllContainers; last: RestartingAllContainers 137; 1',
      'o: PodInitializing; last: RestartingAllContainers 137; 1',
    ]);
    assert.notEqual(status.phase, 'Failed', 'nothing failed: it was asked for');

    const again = [seen('i', 'i2', { state: 'exited' }, 1), seen('m', 'm2', { state: 'running' }, 1)];
    status = derive(gang, [...again, seen('o', 'o2', { state: 'running' }, 1)], status);
    assert.deepEqual(briefly(status), [
      'i: 0 r://i2; last: RestartingAllContainers 137; 1',
      'm: running; last: RestartingAllContainers 137; 1',
      'o: running; last: RestartingAllContainers 137; 1',
    ]);
    assert.equal(status.phase, 'Running');
  });

  it('is nobody’s business in a pod without such a rule', () => {
    assert.equal(restarting(derive(single, [], {})), undefined);
  });
});

describe('the state before', () => {
  const first = seen('c', 'c1', { state: 'exited', exitCode: 1, reason: 'Error' });
  const ended = derive(single, [first], {});
  for (const [name, containers, previous, error, expected] of [
    [
      'of an instance the runtime still has',
      [seen('c', 'c2', { state: 'running' }, 1), first],
      ended,
      '',
      'c: running; last: Error 1 r://c1; 1',
    ],
    [
      'of an instance the runtime has no more',
      [seen('c', 'c2', { state: 'running' }, 1)],
      ended,
      '',
      'c: running; last: Error 1 r://c1; 1',
    ],
    [
      'of an instance whose records are gone too',
      [seen('c', 'c2', { state: 'running' })],
      ended,
      '',
      'c: running; last: Error 1 r://c1; 1',
    ],
    ['while it waits', [first], ended, 'CrashLoopBackOff', 'c: CrashLoopBackOff; last: Error 1 r://c1; 0'],
    [
      'when it waits no longer',
      [first],
      derive(single, [first], ended, 'CrashLoopBackOff'),
      '',
      'c: Error 1 r://c1; last: Error 1 r://c1; 0',
    ],
    [
      'of one that waited and is gone',
      [],
      derive(single, [first], ended, 'CrashLoopBackOff'),
      '',
      'c: ContainerCreating; last: Error 1 r://c1; 0',
    ],
    [
      'of one that ran and is gone',
      [],
      derive(single, [seen('c', 'c1', { state: 'running' })], {}),
      '',
      'c: ContainerCreating; last: ContainerStatusUnknown 137; 1',
    ],
    [
      'of one that ran again and is gone',
      [],
      derive(single, [seen('c', 'c2', { state: 'running' }, 1)], ended),
      '',
      'c: ContainerCreating; last: Error 1 r://c1; 1',
    ],
    ['of one that ended and is gone', [], ended, '', 'c: Error 1 r://c1; last: ; 0'],
  ] as const)
    it(name, () =>
      assert.deepEqual(briefly(derive(single, containers, previous, error === '' ? undefined : error)), [expected]),
    );
});
