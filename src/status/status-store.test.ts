// What the store makes of a status: what it refuses, and how it closes the status of a pod that is over.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Container, ContainerStatus, Pod, PodStatus, RestartPolicy } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { StatusStore } from './status-store.ts';

const storeOf = (): StatusStore =>
  new StatusStore({ clock: new ManualClock(), log: silentLogger, onChange: () => undefined });

const ended = (exitCode: number, reason = 'Error') => ({
  terminated: { exitCode, reason, startedAt: null, finishedAt: null },
});
const STATES = {
  waiting: { state: { waiting: { reason: 'PodInitializing' } }, lastState: {} },
  'waiting again': { state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended(1) },
  running: { state: { running: { startedAt: 'x' } }, lastState: {} },
  done: { state: ended(0, 'Completed'), lastState: {} },
  failed: { state: ended(1), lastState: {} },
  lost: { state: ended(137, 'ContainerStatusUnknown'), lastState: {} },
} as const;
type Short = keyof typeof STATES;

const statusOf = (name: string, short: Short, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name,
  ready: false,
  restartCount: 0,
  image: '',
  imageID: '',
  ...STATES[short],
  ...more,
});
const podOf = (spec: Partial<Pod['spec']>): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: { containers: [{ name: 'c' }], ...spec },
});

describe('a container that ended', () => {
  const rows: [what: string, policy: RestartPolicy, container: Partial<Container>, from: Short, isTaken: boolean][] = [
    ['of a pod that restarts all', 'Always', {}, 'done', true],
    ['of a pod that restarts all, itself never', 'Always', { restartPolicy: 'Never' }, 'failed', true],
    ['well', 'OnFailure', {}, 'done', false],
    ['ill', 'OnFailure', {}, 'failed', true],
    ['ill, itself never', 'OnFailure', { restartPolicy: 'Never' }, 'failed', true],
    ['ill', 'Never', {}, 'failed', false],
    ['ill, itself always', 'Never', { restartPolicy: 'Always' }, 'failed', true],
    ['as nobody saw', 'Never', {}, 'lost', true],
  ];
  for (const [what, restartPolicy, container, from, isTaken] of rows)
    it(`${what}, ${restartPolicy}: ${isTaken ? 'may live' : 'stays dead'}`, () => {
      const store = storeOf();
      const pod = podOf({ restartPolicy, containers: [{ name: 'c', ...container }] });
      store.set(pod, { phase: 'Running', containerStatuses: [statusOf('c', from)] });
      const after = store.set(pod, { phase: 'Running', containerStatuses: [statusOf('c', 'running')] });
      assert.equal(after.containerStatuses?.[0]?.state.running !== undefined, isTaken);
    });

  it('and runs in a new sandbox', () => {
    const store = storeOf();
    const pod = podOf({ restartPolicy: 'OnFailure', containers: [{ name: 'c', restartPolicy: 'Never' }] });
    const before = statusOf('c', 'done', { containerID: 'r://1' });
    const next = statusOf('c', 'running', { containerID: 'r://2', restartCount: 1 });
    store.set(pod, { phase: 'Running', containerStatuses: [before] });
    const after = store.set(pod, { phase: 'Running', containerStatuses: [next] });
    assert.ok(after.containerStatuses?.[0]?.state.running);
  });
});

describe('a status that says the same again', () => {
  const pod = podOf({});
  const next = (): PodStatus => ({ phase: 'Running', containerStatuses: [statusOf('c', 'running')] });

  it('is the one that is there', () => {
    const store = storeOf();
    const first = store.set(pod, next());
    const entry = store.get(podUid('u'));
    assert.equal(store.set(pod, next()), first);
    assert.equal(store.get(podUid('u')), entry);
    const newer = { ...pod };
    assert.equal(store.set(newer, next()), first);
    assert.deepEqual(store.get(podUid('u')), { ...entry, pod: newer });
  });

  it('ends that the pod starts over', () => {
    const store = storeOf();
    store.set(pod, next());
    store.reopen(podUid('u'));
    store.set(pod, next());
    assert.equal(store.get(podUid('u'))?.reopened, undefined);
  });
});

describe('a pod that is over', () => {
  const shown = (statuses: readonly ContainerStatus[] | undefined): string =>
    (statuses ?? []).map(({ state }) => state.terminated?.reason ?? 'waiting').join(' ');
  const rows: [what: string, init: readonly Short[], main: Short, PodStatus['phase'], closed: readonly string[]][] = [
    ['that ran', [], 'running', 'Running', ['', 'ContainerStatusUnknown', 'Failed']],
    ['that never started', [], 'waiting', 'Pending', ['', 'ContainerStatusUnknown', 'Failed']],
    ['that had ended well', [], 'done', 'Succeeded', ['', 'Completed', 'Succeeded']],
    [
      'whose first init container never started',
      ['waiting', 'waiting'],
      'waiting',
      'Pending',
      ['ContainerStatusUnknown waiting', 'waiting', 'Failed'],
    ],
    [
      'whose second init container ran',
      ['done', 'running', 'waiting'],
      'waiting',
      'Pending',
      ['Completed ContainerStatusUnknown waiting', 'waiting', 'Failed'],
    ],
    [
      'whose second init container was to be tried again',
      ['done', 'waiting again', 'waiting'],
      'waiting',
      'Pending',
      ['Completed ContainerStatusUnknown waiting', 'waiting', 'Failed'],
    ],
    [
      'whose init containers were done',
      ['done'],
      'waiting',
      'Pending',
      ['Completed', 'ContainerStatusUnknown', 'Failed'],
    ],
  ];
  for (const [what, init, main, phase, closed] of rows)
    it(what, () => {
      const store = storeOf();
      const pod = podOf({ initContainers: init.map((_, i) => ({ name: `i${i}` })) });
      store.set(pod, {
        ...(phase === undefined ? {} : { phase }),
        initContainerStatuses: init.map((short, i) => statusOf(`i${i}`, short)),
        containerStatuses: [statusOf('c', main)],
      });
      store.finish(pod);
      const entry = store.get(podUid('u'));
      const { initContainerStatuses, containerStatuses, phase: last } = entry?.status ?? {};
      assert.deepEqual([shown(initContainerStatuses), shown(containerStatuses), last], closed);
      assert.equal(entry?.finished, true);
    });

  const stopped: [what: string, init: Partial<Container>, before: Partial<ContainerStatus>, main: string][] = [
    ['while its init container ran, which ended well when stopped', {}, STATES.running, 'waiting'],
    ['after its init container', {}, STATES.done, 'ContainerStatusUnknown'],
    [
      'while its sidecar ran',
      { restartPolicy: 'Always' },
      { ...STATES.running, started: true },
      'ContainerStatusUnknown',
    ],
    ['while its sidecar started', { restartPolicy: 'Always' }, { ...STATES.running, started: false }, 'waiting'],
  ];
  for (const [what, init, before, main] of stopped)
    it(`that was stopped ${what}`, () => {
      const store = storeOf();
      const pod = podOf({ initContainers: [{ name: 'i', ...init }] });
      const status = (of: Partial<ContainerStatus>): PodStatus => ({
        phase: 'Pending',
        initContainerStatuses: [statusOf('i', 'waiting', of)],
        containerStatuses: [statusOf('c', 'waiting')],
      });
      store.set(pod, status(before));
      store.set(pod, status(STATES.done), true);
      store.set(pod, { ...status(STATES.done), observedGeneration: 2 }, true);
      store.finish(pod);
      assert.equal(shown(store.statusOf(podUid('u'))?.containerStatuses), main);
    });
});
