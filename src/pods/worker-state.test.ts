import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Pod } from '../core/pod.ts';
import {
  contentMayBeRemoved,
  containersShouldStop,
  graceFor,
  initialState,
  mayHaveRunningContainers,
  next,
  runtimeMayBeRemoved,
  type PodStopRequest,
  type WorkerEvent,
  type WorkerState,
} from './worker-state.ts';

const stop = (request: PodStopRequest = {}, graceSeconds = 30): WorkerEvent => ({ on: 'stop', request, graceSeconds });
const pod = (grace?: number, deletionGrace?: number): Pod => ({
  metadata: { name: 'p', ...(deletionGrace === undefined ? {} : { deletionGracePeriodSeconds: deletionGrace }) },
  spec: { containers: [], ...(grace === undefined ? {} : { terminationGracePeriodSeconds: grace }) },
});

describe('worker state', () => {
  it('goes from syncing through terminating and terminated to finished, and stays there', () => {
    let s: WorkerState = initialState;
    for (const [event, phase] of [
      [{ on: 'containersStopped' }, 'syncing'],
      [stop(), 'terminating'],
      [{ on: 'cleanedUp' }, 'terminating'],
      [{ on: 'containersStopped' }, 'terminated'],
      [stop(), 'terminated'],
      [{ on: 'cleanedUp' }, 'finished'],
      [stop(), 'finished'],
      [{ on: 'containersStopped' }, 'finished'],
    ] as [WorkerEvent, string][]) {
      s = next(s, event, 1);
      assert.equal(s.phase, phase);
    }
  });

  it('lets grace only shrink and keeps evicted and deleted once said', () => {
    let s = next(initialState, stop({ evicted: true }, 30), 1);
    s = next(s, stop({ deleted: true }, 60), 2);
    s = next(s, stop({}, 5), 3);
    assert.deepEqual(s, {
      phase: 'terminating',
      since: 1,
      graceSeconds: 5,
      evicted: true,
      deleted: true,
      restart: false,
    });
  });

  it('never goes back, whatever happens in whatever order', () => {
    const order = ['syncing', 'terminating', 'terminated', 'finished'];
    const event = fc.oneof(
      fc
        .record({ grace: fc.integer({ min: 1, max: 100 }), deleted: fc.boolean(), evicted: fc.boolean() })
        .map((r) => stop(r, r.grace)),
      fc.constant<WorkerEvent>({ on: 'containersStopped' }),
      fc.constant<WorkerEvent>({ on: 'cleanedUp' }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 20 }), (events) => {
        let s: WorkerState = initialState;
        for (const e of events) {
          const after = next(s, e, 0);
          assert.ok(order.indexOf(after.phase) >= order.indexOf(s.phase));
          if (s.phase === 'terminating' && after.phase === 'terminating')
            assert.ok(after.graceSeconds <= s.graceSeconds);
          s = after;
        }
      }),
    );
  });

  const deleted = next(initialState, stop({ deleted: true }), 0);
  const again: WorkerEvent = { on: 'addedAgain' };
  const stopped: WorkerEvent = { on: 'containersStopped' };
  const cleaned: WorkerEvent = { on: 'cleanedUp' };
  for (const [name, events, want] of [
    ['while it is stopped', [again, stopped, cleaned], 'syncing'],
    ['while it is cleaned up', [stopped, again, cleaned], 'syncing'],
    ['after it is finished', [stopped, cleaned, again], 'syncing'],
    ['and deleted once more', [again, stop({ deleted: true }), stopped, cleaned], 'finished'],
    ['and evicted while it is stopped', [again, stop({ evicted: true }), stopped, cleaned], 'syncing'],
    ['before it ever started', [again, { on: 'neverStarted' }], 'syncing'],
    ['not at all', [{ on: 'neverStarted' }], 'finished'],
  ] as [string, WorkerEvent[], string][])
    it(`added again ${name}: ${want}`, () => {
      let s = deleted;
      for (const event of events) s = next(s, event, 1);
      assert.equal(s.phase, want);
    });

  it('keeps the dead containers of a pod that starts over', () => {
    const s = next(next(deleted, again, 1), stopped, 1);
    assert.equal(contentMayBeRemoved(s, true), false);
  });

  for (const [name, p, request, want] of [
    ['the spec when nobody asks for less', pod(30), {}, 30],
    ['the deletion grace', pod(30, 10), {}, 10],
    ['an override', pod(30, 10), { graceSeconds: 2 }, 2],
    ['a longer override loses to the deletion grace', pod(30, 10), { graceSeconds: 20 }, 10],
    ['at least one second', pod(0, 0), {}, 1],
    ['one second without a spec', undefined, {}, 1],
  ] as [string, Pod | undefined, PodStopRequest, number][]) {
    it(`grace is ${name}`, () => assert.equal(graceFor(p, request), want));
  }

  it('answers what other parts ask', () => {
    const evicted = next(initialState, stop({ evicted: true }), 0);
    const deleted = next(next(initialState, stop({ deleted: true }), 0), { on: 'containersStopped' }, 0);
    const rows: [WorkerState | undefined, boolean, [boolean, boolean, boolean, boolean]][] = [
      [initialState, true, [false, false, false, true]],
      [evicted, true, [true, false, false, true]],
      [next(evicted, { on: 'containersStopped' }, 0), true, [true, true, true, false]],
      [deleted, true, [true, true, true, false]],
      [undefined, true, [true, true, true, false]],
      [undefined, false, [false, false, false, true]],
    ];
    for (const [s, synced, want] of rows) {
      const got = [
        containersShouldStop(s, synced),
        runtimeMayBeRemoved(s, synced),
        contentMayBeRemoved(s, synced),
        mayHaveRunningContainers(s, synced),
      ];
      assert.deepEqual(got, want);
    }
  });
});
