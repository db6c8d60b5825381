import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Pod, PodCondition } from '../core/pod.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import { PodResizing, withResizeConditions } from './pod-resizing.ts';

const pod = (cpu: string): Pod => ({
  metadata: { name: 'p', uid: 'u' },
  spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }] },
});

function setup(known: { granted?: boolean; actuated?: boolean; resized?: boolean } = {}) {
  const did: string[] = [];
  const resizing = new PodResizing({
    allocations: {
      has: () => known.granted === true,
      grant: () => void did.push('grant'),
      allocated: () => pod('granted'),
      retain: () => void did.push('retain'),
    },
    actuated: {
      has: () => known.actuated === true,
      of: () => ({ containers: new Map() }),
      set: (_uid, container) => void did.push(`actuated ${container}`),
      setAll: (_uid, containers) => void did.push(...[...containers].map(([container]) => `actuated ${container}`)),
      setPod: () => void did.push('actuated pod'),
      retain: () => void did.push('retain'),
    },
    resizes: {
      conditionsOf: () => [],
      failed: (_pod, error) => void did.push(`failed ${error}`),
      forget: () => void did.push('forget'),
      offer: () => void did.push('offer'),
      retry: (why) => void did.push(`retry ${why}`),
      progress: (_pod, inProgress) => void did.push(`progress ${inProgress}`),
      retryPostponed: () => void did.push('retry postponed'),
      resume: () => void did.push('resume'),
      retain: () => void did.push('retain'),
      shown: () => void did.push('shown'),
    },
    plan: {
      containers: (p) => p.spec.containers,
      isResized: (_pod, _actuated, counts) => known.resized === true && counts('c'),
    },
    updateProblem: (_before, now) =>
      now.spec.containers[0]?.resources?.requests?.['cpu'] === 'bad' ? 'no' : undefined,
    events: { pod: (_pod, _type, reason) => void did.push(reason), node: () => undefined },
  });
  return { resizing, did };
}

const running = aliveSnapshot('u');
type Act = (resizing: PodResizing) => unknown;
const rows: [what: string, known: Parameters<typeof setup>[0], act: Act, did: string[]][] = [
  ['a new pod is granted what it asks for', {}, (r) => r.admitted(pod('1')), ['grant']],
  ['a pod keeps what it was granted before a restart', { granted: true }, (r) => r.admitted(pod('1')), ['resume']],
  ['all pods are known', {}, (r) => r.retryPostponed(), ['retry postponed']],
  ['a status that changed may free something', {}, (r) => r.shown(pod('1'), pod('1')), ['shown']],
  ['the first status of a pod frees nothing', {}, (r) => r.shown(pod('1'), undefined), []],
  ['a new pod is offered', {}, (r) => r.offer(pod('bad')), ['offer']],
  [
    'an update this node cannot do is told of',
    {},
    (r) => r.offer(pod('bad'), pod('1')),
    ['FailedNodeDeclaredFeaturesCheck', 'offer'],
  ],
  ['a new cgroup has what was granted', {}, (r) => r.cgroupMade(pod('1')), ['actuated c']],
  ['what is in force already stays', { actuated: true }, (r) => r.cgroupMade(pod('1')), []],
  [
    'resources of the pod as a whole',
    { actuated: true },
    (r) => {
      const { spec, ...rest } = pod('1');
      r.cgroupMade({ ...rest, spec: { ...spec, resources: { requests: { cpu: '2' } } } });
    },
    ['actuated pod'],
  ],
  ['a failed resize', {}, (r) => r.synced(pod('1'), running, 'no room'), ['failed no room']],
  [
    'a resize under way',
    { actuated: true, resized: true },
    (r) => r.synced(pod('1'), running, undefined),
    ['progress true'],
  ],
  [
    'nothing runs yet',
    { actuated: true, resized: true },
    (r) => r.synced(pod('1'), undefined, undefined),
    ['progress false'],
  ],
  ['nothing is in force yet', { resized: true }, (r) => r.synced(pod('1'), running, undefined), ['progress false']],
  ['a pod that is over waits for nothing', {}, (r) => r.withConditions({}, pod('1'), true), ['forget']],
  ['pods that are gone', {}, (r) => r.keepOnly(new Set([podUid('u')])), ['retain', 'retain', 'retain']],
];

for (const [what, known, act, did] of rows)
  test(what, () => {
    const t = setup(known);
    act(t.resizing);
    assert.deepEqual(t.did, did);
  });

test('workers see the pod as it was granted', () => {
  const { resizing } = setup();
  assert.equal(resizing.allocated(undefined), undefined);
  assert.equal(resizing.allocated(pod('1')).spec.containers[0]?.resources?.requests?.['cpu'], 'granted');
});

test('conditions of resizes stand before the pod own ones', () => {
  const c = (type: string): PodCondition => ({ type, status: 'True' });
  const before = { conditions: [c('foreign'), c('PodResizePending'), c('PodReadyToStartContainers'), c('Ready')] };
  const { conditions } = withResizeConditions(before, [c('PodResizeInProgress')]);
  assert.deepEqual(
    conditions?.map(({ type }) => type),
    ['foreign', 'PodResizeInProgress', 'PodReadyToStartContainers', 'Ready'],
  );
});
