import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid, type PodUid } from '../core/ids.ts';
import type { Pod, PodStatus } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { needsExplanation } from '../status/explanation.ts';
import { StatusStore } from '../status/status-store.ts';
import type { Why } from './facts.ts';
import { NotReadyConditions } from './not-ready.ts';

const U = podUid('u');
const POD: Pod = { metadata: { name: 'web', uid: 'u', generation: 2 }, spec: { containers: [] } };
const pending: PodStatus = { phase: 'Pending', conditions: [{ type: 'Ready', status: 'False' }] };
const ready: PodStatus = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
const missing: Why = {
  state: 'failing',
  cause: 'ImageNotFound',
  sentence: 'The registry does not have it.',
  evidence: ['secret evidence'],
  todo: 'Check the name.',
};

type Bench = {
  readonly clock: ManualClock;
  readonly store: StatusStore;
  /** Statuses that would have been sent. */
  readonly changes: PodUid[];
  readonly condition: () => object | undefined;
  say: Why | Error;
  stop(): Promise<void>;
};

function open(enabled = true): Bench {
  const clock = new ManualClock();
  const changes: PodUid[] = [];
  const stopping = new AbortController();
  const store: StatusStore = new StatusStore({
    clock,
    log: silentLogger,
    onChange: (uid) => {
      changes.push(uid);
      conditions.statusChanged(uid);
    },
    explains: enabled,
  });
  const bench: Bench = {
    clock,
    store,
    changes,
    condition: () => {
      const found = store.statusOf(U)?.conditions?.find((c) => c.type === 'kubelet-ts/WhyNotReady');
      const { lastTransitionTime: _when, ...rest } = found ?? {};
      return found === undefined ? undefined : rest;
    },
    say: missing,
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
  const why = (): Why => {
    if (bench.say instanceof Error) throw bench.say;
    return bench.say;
  };
  const conditions = new NotReadyConditions(
    { clock, log: silentLogger, why, needsExplanation, statuses: store },
    { enabled },
  );
  const running = conditions.run(stopping.signal);
  return bench;
}

describe('the condition that says why a pod is not ready', () => {
  it('comes after half a minute, in one write, with the cause as its reason', async () => {
    const b = open();
    b.store.set(POD, pending);
    await b.clock.advance(29_000);
    assert.equal(b.condition(), undefined);
    assert.equal(b.changes.length, 1);
    await b.clock.advance(2000);
    assert.deepEqual(b.condition(), {
      type: 'kubelet-ts/WhyNotReady',
      observedGeneration: 2,
      status: 'True',
      reason: 'ImageNotFound',
      message: 'The registry does not have it. Check the name.',
      lastProbeTime: null,
    });
    assert.equal(b.changes.length, 2);
    await b.stop();
  });

  it('costs nothing where the pod becomes ready before', async () => {
    const b = open();
    b.store.set(POD, pending);
    await b.clock.advance(20_000);
    b.store.set(POD, ready);
    assert.equal(b.clock.pending, 0, 'no timer is left');
    await b.clock.advance(120_000);
    assert.equal(b.changes.length, 2);
    await b.stop();
  });

  it('goes in the write that shows the pod ready, and comes again after another half minute', async () => {
    const b = open();
    b.store.set(POD, pending);
    await b.clock.advance(31_000);
    b.store.set(POD, {
      ...ready,
      conditions: [...(b.store.statusOf(U)?.conditions?.slice(1) ?? []), ...(ready.conditions ?? [])],
    });
    assert.equal(b.condition(), undefined);
    assert.equal(b.changes.length, 3);
    b.store.set(POD, pending);
    await b.clock.advance(31_000);
    assert.notEqual(b.condition(), undefined);
    await b.stop();
  });

  it('is not written again while it says the same', async () => {
    const b = open();
    b.store.set(POD, pending);
    await b.clock.advance(3_600_000);
    assert.equal(b.changes.length, 2);
    await b.stop();
  });

  it('follows another cause within a minute', async () => {
    const b = open();
    b.store.set(POD, pending);
    await b.clock.advance(31_000);
    b.say = { ...missing, cause: 'RegistryUnreachable' };
    await b.clock.advance(60_000);
    assert.equal((b.condition() as { reason: string }).reason, 'RegistryUnreachable');
    assert.equal(b.changes.length, 3);
    await b.stop();
  });

  it('follows other words for the same cause at most every ten minutes', async () => {
    const b = open();
    b.store.set(POD, pending);
    for (let minute = 0; minute < 60; minute++) {
      b.say = { ...missing, sentence: `Attempt ${minute}.` };
      await b.clock.advance(60_000);
    }
    assert.ok(b.changes.length <= 1 + 6, `${b.changes.length} writes in an hour`);
    assert.ok(b.changes.length >= 6);
    await b.stop();
  });

  it('says nothing of a pod that is being stopped in its time', async () => {
    const b = open();
    b.say = { ...missing, state: 'stopping' };
    b.store.set(POD, pending);
    await b.clock.advance(120_000);
    assert.equal(b.changes.length, 1);
    await b.stop();
  });

  it('ends with the pod', async () => {
    const b = open();
    b.store.set(POD, pending);
    await b.clock.advance(31_000);
    b.store.finish(POD);
    assert.equal(b.store.statusOf(U)?.phase, 'Failed');
    assert.equal(b.condition(), undefined);
    await b.clock.advance(120_000);
    assert.equal(b.clock.pending, 0);
    await b.stop();
  });

  it('of a pod that is gone from the store leaves no timer', async () => {
    const b = open();
    b.store.set(POD, pending);
    b.store.delete(U);
    await b.clock.advance(31_000);
    assert.equal(b.clock.pending, 0);
    await b.stop();
  });

  it('is cut where a message is long', async () => {
    const b = open();
    b.say = { ...missing, sentence: 'x'.repeat(5000) };
    b.store.set(POD, pending);
    await b.clock.advance(31_000);
    assert.equal((b.condition() as { message: string }).message.length, 600);
    await b.stop();
  });

  it('of one pod that cannot be explained costs nobody else', async () => {
    const b = open();
    b.say = new Error('boom');
    b.store.set(POD, pending);
    await b.clock.advance(31_000);
    b.say = missing;
    await b.clock.advance(60_000);
    assert.notEqual(b.condition(), undefined);
    await b.stop();
  });

  it('never comes where it is switched off, and one of before goes with the next status', async () => {
    const b = open(false);
    const before = { type: 'kubelet-ts/WhyNotReady', status: 'True' as const, message: 'old' };
    b.store.set(POD, { ...pending, conditions: [...(pending.conditions ?? []), before] });
    assert.equal(b.condition(), undefined);
    await b.clock.advance(120_000);
    assert.equal(b.changes.length, 1);
    assert.equal(b.clock.pending, 0);
    await b.stop();
  });

  it('leaves no timer when the kubelet stops', async () => {
    const b = open();
    b.store.set(POD, pending);
    await b.clock.advance(1000);
    await b.stop();
    assert.equal(b.clock.pending, 0);
  });
});
