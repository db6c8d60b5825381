import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Probe } from '../core/pod.ts';
import {
  askAgainAfterMs,
  decide,
  NEW_WORKER,
  nextBeat,
  settle,
  type ContainerView,
  type Decision,
  type PodView,
  type ProbeType,
  type WorkerState,
} from './probe-state.ts';

const NOW = 1_000_000;
const RUNNING: ContainerView = {
  containerId: 'a',
  running: true,
  terminated: false,
  mayRestart: true,
  startedAtMs: NOW - 60_000,
  started: true,
  sidecar: false,
  olderThanKubelet: false,
};
const view = (container: Partial<ContainerView> | undefined, pod: Partial<PodView> = {}): PodView => ({
  over: false,
  beingDeleted: false,
  container: container === undefined ? undefined : { ...RUNNING, ...container },
  ...pod,
});
const on = (id: string, more: Partial<WorkerState> = {}): WorkerState => ({ ...NEW_WORKER, containerId: id, ...more });

type Row = [
  name: string,
  type: ProbeType,
  state: WorkerState,
  pod: PodView | undefined,
  wanted: Omit<Decision, 'state'> & { state?: WorkerState },
  probe?: Probe,
];

const ROWS: Row[] = [
  ['no status yet', 'liveness', NEW_WORKER, undefined, { next: 'wait' }],
  ['pod over', 'liveness', on('a'), view({}, { over: true }), { next: 'exit' }],
  ['container unknown', 'liveness', NEW_WORKER, view(undefined), { next: 'wait' }],
  ['not created yet', 'liveness', NEW_WORKER, view({ containerId: undefined }), { next: 'wait' }],
  ['new instance, liveness', 'liveness', NEW_WORKER, view({}), { next: 'probe', publish: 'success', initial: true }],
  ['new instance, readiness', 'readiness', NEW_WORKER, view({}), { next: 'probe', publish: 'failure', initial: true }],
  [
    'new instance, startup',
    'startup',
    NEW_WORKER,
    view({ started: false }),
    { next: 'probe', publish: 'unknown', initial: true },
  ],
  [
    'the next instance ends the hold and drops the old result',
    'liveness',
    on('old', { onHold: true, last: 'failure', inARow: 0 }),
    view({}),
    { next: 'probe', publish: 'success', initial: true, forget: 'old', state: on('a') },
  ],
  [
    'failures of an instance that ended do not count against the next',
    'liveness',
    on('old', { last: 'failure', inARow: 2 }),
    view({}),
    { next: 'probe', publish: 'success', initial: true, forget: 'old', state: on('a') },
  ],
  [
    'successes of an instance that ended do not make the next one ready',
    'readiness',
    on('old', { last: 'success', inARow: 7 }),
    view({}),
    { next: 'probe', publish: 'failure', initial: true, forget: 'old', state: on('a') },
  ],
  ['on hold', 'startup', on('a', { onHold: true }), view({ started: false }), { next: 'wait' }],
  ['older than the kubelet', 'readiness', NEW_WORKER, view({ olderThanKubelet: true }), { next: 'probe' }],
  [
    'older sidecar that had started',
    'startup',
    NEW_WORKER,
    view({ olderThanKubelet: true, sidecar: true }),
    { next: 'wait', publish: 'success', initial: true },
  ],
  ['older main that had started', 'startup', NEW_WORKER, view({ olderThanKubelet: true }), { next: 'wait' }],
  ['waiting', 'readiness', on('a'), view({ running: false }), { next: 'wait', publish: 'failure' }],
  [
    'ended, comes back',
    'readiness',
    on('a'),
    view({ running: false, terminated: true }),
    { next: 'wait', publish: 'failure' },
  ],
  [
    'ended for good',
    'readiness',
    on('a'),
    view({ running: false, terminated: true, mayRestart: false }),
    { next: 'exit', publish: 'failure' },
  ],
  ['deleted, liveness', 'liveness', on('a'), view({}, { beingDeleted: true }), { next: 'exit', publish: 'success' }],
  [
    'deleted, startup',
    'startup',
    on('a'),
    view({ started: false }, { beingDeleted: true }),
    { next: 'exit', publish: 'success' },
  ],
  ['deleted, readiness', 'readiness', on('a'), view({}, { beingDeleted: true }), { next: 'probe' }],
  [
    'within the initial delay',
    'liveness',
    on('a'),
    view({ startedAtMs: NOW - 4999 }),
    { next: 'wait' },
    { initialDelaySeconds: 5 },
  ],
  [
    'the initial delay is over',
    'liveness',
    on('a'),
    view({ startedAtMs: NOW - 5000 }),
    { next: 'probe' },
    { initialDelaySeconds: 5 },
  ],
  ['not started holds back liveness', 'liveness', on('a'), view({ started: false }), { next: 'wait' }],
  ['not started holds back readiness', 'readiness', on('a'), view({ started: false }), { next: 'wait' }],
  ['started ends startup probing', 'startup', on('a'), view({}), { next: 'wait' }],
];

for (const [name, type, state, pod, wanted, probe = {}] of ROWS)
  test(`at a beat: ${name}`, () => {
    const { state: next, ...rest } = decide(type, probe, state, pod, NOW);
    const { state: wantedState, ...wantedRest } = wanted;
    assert.deepEqual(rest, wantedRest);
    if (wantedState !== undefined) assert.deepEqual(next, wantedState);
  });

/** Feeds answers (s, f) and shows what was published after each (-: nothing), and where it went on hold (!). */
function play(type: ProbeType, probe: Probe, answers: string): string {
  let state = on('a');
  let shown = '';
  for (const answer of answers) {
    if (state.onHold) break;
    const settled = settle(type, probe, state, answer === 's' ? 'success' : 'failure');
    state = settled.state;
    shown += (settled.publish?.[0] ?? '-') + (state.onHold ? '!' : '');
  }
  return shown;
}

test('thresholds', () => {
  const rows: [ProbeType, Probe, string, string][] = [
    ['readiness', {}, 'sss', 'sss'],
    ['readiness', {}, 'fff', '--f'],
    ['readiness', {}, 'ffsff', '--s--'],
    ['readiness', { failureThreshold: 2, successThreshold: 2 }, 'ffssff', '-f-s-f'],
    ['liveness', { failureThreshold: 2 }, 'sffs', 's-f!'],
    ['liveness', { failureThreshold: 1 }, 'f', 'f!'],
    ['startup', { failureThreshold: 3 }, 'ffs', '--s!'],
    ['startup', { failureThreshold: 2 }, 'ff', '-f!'],
  ];
  for (const [type, probe, answers, wanted] of rows)
    assert.equal(play(type, probe, answers), wanted, `${type} ${answers}`);
});

test('a result is published exactly when its threshold is reached in a row', () => {
  const answers = fc.array(fc.constantFrom('s', 'f'), { maxLength: 40 });
  fc.assert(
    fc.property(answers, fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 }), (list, success, failure) => {
      const probe = { successThreshold: success, failureThreshold: failure };
      const shown = play('readiness', probe, list.join(''));
      let inARow = 0;
      for (const [i, answer] of list.entries()) {
        inARow = list[i - 1] === answer ? inARow + 1 : 1;
        const reached = inARow >= (answer === 's' ? success : failure);
        assert.equal(shown[i], reached ? answer : '-');
      }
    }),
  );
});

test('the beat survives slow probes', () => {
  assert.deepEqual(nextBeat(0, 1000, 10), { beat: 1000, at: 1000 });
  assert.deepEqual(nextBeat(1000, 1000, 2500), { beat: 2000, at: 2500 });
  assert.deepEqual(nextBeat(2000, 1000, 2510), { beat: 3000, at: 3000 });
  assert.deepEqual(nextBeat(0, 1000, 5200), { beat: 5000, at: 5200 });
  assert.deepEqual(nextBeat(0, 1000, 1000), { beat: 1000, at: 1000 });
});

test('a failure right after the start says nothing yet', () => {
  const cases: readonly [ProbeType, Probe, number, number | undefined][] = [
    ['readiness', {}, 0, 100],
    ['readiness', {}, 99, 100],
    ['readiness', {}, 400, 400],
    ['readiness', {}, 999, 999],
    ['readiness', {}, 1000, undefined],
    ['readiness', {}, -1, undefined],
    ['readiness', { initialDelaySeconds: 1 }, 0, undefined],
    ['liveness', {}, 0, undefined],
    ['startup', {}, 0, undefined],
  ];
  for (const [type, probe, ageMs, wanted] of cases)
    assert.equal(askAgainAfterMs(type, probe, NOW - ageMs, NOW), wanted, `${type} after ${ageMs} ms`);
});
