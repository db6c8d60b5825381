// How reads of one pod are shared and kept in order, on a runtime whose answers a test releases by hand.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ContainerState } from '../cri/gen/cri.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { forever, setup, UID } from './pod-cache.fixture.ts';

describe('a pod that the caller has just made', () => {
  it('is read without a search, and looks as if it had been searched for', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    const { version: _, ...quick } = await t.cache.refresh(UID, forever, await t.made());
    assert.deepEqual([t.control.lists, t.control.statuses], [0, 1]);
    assert.deepEqual(quick.ips, ['10.0.0.1']);
    assert.equal(t.cache.stateOf('c'), 'running');
    const { version: __, ...full } = await t.cache.refresh(UID, forever);
    assert.equal(t.control.lists, 1);
    assert.deepEqual(quick, full);
  });

  it('is searched for when it was seen before', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'notReady' });
    await t.cache.refresh(UID, forever);
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    await t.cache.refresh(UID, forever, await t.made());
    assert.equal(t.control.lists, 2);
  });

  it('is searched for when one of its containers is gone already', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready' });
    t.control.failStatus = new GrpcError(GrpcCode.NotFound, 'no such container');
    const snapshot = await t.cache.refresh(UID, forever, await t.made());
    assert.equal(t.control.lists, 1);
    assert.deepEqual([snapshot.sandboxes.length, snapshot.containers.length], [1, 0]);
  });
});

describe('a pod that the caller has just stopped', () => {
  it('is read without a search, and looks as if it had been searched for', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    await t.cache.refresh(UID, forever);
    Object.assign(t.world, { sandbox: 'notReady', container: ContainerState.CONTAINER_EXITED });
    const { version: _, ...quick } = await t.cache.refresh(UID, forever, 'stopped');
    assert.deepEqual([t.control.lists, t.control.statuses], [1, 2]);
    const { version: __, ...full } = await t.cache.refresh(UID, forever);
    assert.deepEqual(quick, full);
  });

  it('needs no further read when its containers were read before its sandbox stopped', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    await t.cache.refresh(UID, forever);
    Object.assign(t.world, { container: ContainerState.CONTAINER_EXITED });
    const early = await t.cache.refresh(UID, forever, 'containersStopped');
    assert.deepEqual([early.sandboxes[0]?.ready, early.containers[0]?.state], [true, 'exited']);
    Object.assign(t.world, { sandbox: 'notReady' });
    const last = await t.cache.refresh(UID, forever, 'stopped');
    assert.deepEqual([last.sandboxes[0]?.ready, last.containers[0]?.state], [false, 'exited']);
    assert.deepEqual([t.control.lists, t.control.statuses], [1, 2]);
  });

  const searched: readonly (readonly [string, (t: ReturnType<typeof setup>) => void])[] = [
    ['one of its containers still runs', (t) => void (t.world.container = ContainerState.CONTAINER_RUNNING)],
    ['one of its containers is gone', (t) => void (t.control.failStatus = new GrpcError(GrpcCode.NotFound, 'gone'))],
    ['something else was done to it that nobody read', (t) => t.cache.beginMutation(UID, 'started')(true)],
  ];
  for (const [when, arrange] of searched)
    it(`is searched for when ${when}`, async () => {
      const t = setup();
      Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
      await t.cache.refresh(UID, forever);
      Object.assign(t.world, { sandbox: 'notReady', container: ContainerState.CONTAINER_EXITED });
      arrange(t);
      await t.cache.refresh(UID, forever, 'stopped');
      assert.equal(t.control.lists, 2);
    });
});

describe('a pod that somebody has in hand', () => {
  it('is not read when something ends in it that a read shows before it is let go, and is when none does', async () => {
    for (const seen of [true, false]) {
      const t = setup();
      Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
      await t.cache.refresh(UID, forever);
      const endMutation = t.cache.beginMutation(UID, 'stopped');
      assert.ok(!t.cache.recordNews(UID, 'c', 'started'), 'not foreseen');
      Object.assign(t.world, { sandbox: 'notReady', container: ContainerState.CONTAINER_EXITED });
      assert.ok(t.cache.recordNews(UID, 'c', 'stopped'));
      if (seen) await t.cache.refresh(UID, forever, 'stopped');
      endMutation(false);
      await t.settle();
      assert.deepEqual([t.control.lists, t.cache.stateOf('c')], [seen ? 1 : 2, 'exited']);
    }
  });

  it('is not read when something starts in it that a read shows before it is let go', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    const endMutation = t.cache.beginMutation(UID, 'started');
    assert.ok(t.cache.recordNews(UID, 'c', 'started'));
    await t.clock.advance(500);
    assert.equal(t.control.lists, 0);
    await t.cache.refresh(UID, forever);
    assert.ok(t.cache.recordNews(UID, 'c', 'started'), 'told once more, late');
    endMutation(false);
    await t.clock.advance(5000);
    assert.deepEqual([t.control.lists, t.clock.pending], [1, 0]);
    assert.ok(!t.cache.recordNews(UID, 'c', 'started'), 'nobody has it in hand any more');
  });

  it('is read when it is let go unread', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    const endMutation = t.cache.beginMutation(UID, 'started');
    const again = t.cache.beginMutation(UID, 'started');
    assert.ok(t.cache.recordNews(UID, 'c', 'started'));
    endMutation(false);
    await t.settle();
    assert.equal(t.control.lists, 0, 'one still has it');
    again(false);
    await t.settle();
    assert.deepEqual([t.control.lists, t.clock.pending], [1, 0]);
    assert.equal(t.cache.stateOf('c'), 'running');
  });

  it('is read after a second, however long it stays in hand', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    const endMutation = t.cache.beginMutation(UID, 'started');
    assert.ok(t.cache.recordNews(UID, 'c', 'started'));
    await t.clock.advance(1000);
    assert.equal(t.cache.stateOf('c'), 'running');
    endMutation(false);
    await t.clock.advance(5000);
    assert.deepEqual([t.control.lists, t.clock.pending], [1, 0]);
  });

  it('is outdated from a change that was not read until a read that began after it', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    const early = t.cache.refresh(UID, forever);
    t.cache.beginMutation(UID, 'started')(true);
    await early;
    assert.ok(t.cache.isOutdated(UID), 'that read may have been before the change');
    await t.cache.refresh(UID, forever);
    assert.ok(!t.cache.isOutdated(UID));
    t.cache.beginMutation(UID, 'started')(false);
    assert.ok(!t.cache.isOutdated(UID), 'who did it has read it');
  });

  it('is read by the next relist while it is outdated', async () => {
    const t = setup();
    t.cache.beginMutation(UID, 'started')(true);
    await t.cache.relist(forever);
    assert.ok(!t.cache.isOutdated(UID));
  });
});

describe('what was removed', () => {
  it('is shown no more, at once and without a read, and does not come back with a read that began before', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'notReady', container: ContainerState.CONTAINER_EXITED });
    await t.cache.refresh(UID, forever);
    const told: string[] = [];
    t.cache.onChange((_uid, events) => told.push(...events.map((e) => e.type)));
    t.control.gated = true;
    const late = t.cache.refresh(UID, forever);
    await t.cache.whileRemoving('c', Promise.resolve());
    assert.deepEqual([t.cache.stateOf('c'), t.cache.isRemoved('c')], [undefined, true]);
    assert.deepEqual(told, ['ContainerRemoved']);
    await t.release();
    await late;
    assert.equal(t.cache.stateOf('c'), undefined);
    await t.cache.whileRemoving('s', Promise.resolve());
    assert.equal(t.cache.get(UID), undefined, 'nothing is left of the pod');
  });

  it('is looked at again when it could not be removed', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'notReady', container: ContainerState.CONTAINER_EXITED });
    await t.cache.refresh(UID, forever);
    const failing = t.cache.whileRemoving(
      'c',
      t.settle().then(() => Promise.reject(new Error('busy'))),
    );
    assert.ok(t.cache.isRemoved('c'), 'on its way');
    await assert.rejects(failing, /busy/);
    await t.settle();
    assert.deepEqual([t.cache.isRemoved('c'), t.cache.stateOf('c'), t.control.lists], [false, 'exited', 2]);
  });
});

describe('PodCache', () => {
  it('answers requests during a read with exactly one more read', async () => {
    const t = setup();
    t.control.gated = true;
    t.world.sandbox = 'ready';
    const first = t.cache.refresh(UID, forever);
    await t.settle();
    const later = [1, 2, 3].map(() => t.cache.refresh(UID, forever));
    await t.release();
    assert.equal((await first).sandboxes[0]?.ready, true);
    t.world.sandbox = 'notReady';
    await t.release();
    const snapshots = await Promise.all(later);
    assert.equal(t.control.lists, 2);
    for (const s of snapshots) {
      assert.equal(s.sandboxes[0]?.ready, false);
      assert.ok(s.version > (await first).version);
    }
  });

  it('tries again after a second however often it was asked meanwhile', async () => {
    const t = setup();
    t.world.sandbox = 'ready';
    t.control.fail = new GrpcError(GrpcCode.Internal, 'broken');
    for (let i = 0; i < 6; i++) await assert.rejects(t.cache.refresh(UID, forever));
    t.control.fail = undefined;
    await t.clock.advance(1000);
    assert.equal(t.cache.get(UID)?.sandboxes[0]?.ready, true);
    assert.deepEqual(t.cache.unreadable(), []);
  });

  it('lets a caller leave without harm to the others', async () => {
    const t = setup();
    t.control.gated = true;
    t.world.sandbox = 'ready';
    const stop = new AbortController();
    const leaver = t.cache.refresh(UID, stop.signal);
    const stayer = t.cache.refresh(UID, forever);
    stop.abort(new Error('left'));
    await assert.rejects(leaver, { message: 'left' });
    await t.release();
    await t.release();
    assert.equal((await stayer).sandboxes.length, 1);
  });

  it('forgets a pod of which nothing is left, but tells the caller', async () => {
    const t = setup();
    t.world.sandbox = 'notReady';
    await t.cache.refresh(UID, forever);
    assert.equal(t.cache.ownerOf('s'), UID);
    delete t.world.sandbox;
    const reported: string[] = [];
    t.cache.onChange((_, events) => reported.push(...events.map((e) => e.type)));
    const last = await t.cache.refresh(UID, forever);
    assert.deepEqual([last.sandboxes, last.name, last.namespace], [[], 'p', 'n']);
    assert.equal(t.cache.get(UID), undefined);
    assert.equal(t.cache.ownerOf('s'), undefined);
    assert.deepEqual(reported, ['ContainerRemoved']);
  });

  it('does not ask again about what is dead', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_EXITED });
    await t.cache.refresh(UID, forever);
    await t.cache.refresh(UID, forever);
    assert.equal(t.control.statuses, 1);
  });

  it('is ready after the first relist, and re-reads only pods that changed', async () => {
    const t = setup();
    t.world.sandbox = 'ready';
    assert.equal(t.cache.ready, false);
    assert.equal(await t.cache.relist(forever), 1);
    assert.equal(t.cache.ready, true);
    assert.equal(await t.cache.relist(forever), 0);
    t.world.sandbox = 'notReady';
    assert.equal(await t.cache.relist(forever), 1);
    await t.settle();
    assert.equal(t.cache.get(UID)?.sandboxes[0]?.ready, false);
    assert.deepEqual(t.cache.get(UID)?.ips, ['10.0.0.1']);
  });

  it('names a pod that cannot be read, retries it with growing waits and forgets the trouble', async () => {
    const t = setup();
    t.world.sandbox = 'ready';
    await t.cache.relist(forever);
    t.control.fail = new GrpcError(GrpcCode.Internal, 'broken');
    await assert.rejects(t.cache.refresh(UID, forever), { message: 'broken' });
    assert.deepEqual(
      t.cache.unreadable().map((p) => [p.name, p.error]),
      [['p', 'broken']],
    );
    assert.equal(t.cache.get(UID)?.sandboxes[0]?.ready, true);
    t.control.fail = undefined;
    assert.equal(await t.cache.relist(forever), 0, 'waits first');
    assert.equal(t.cache.unreadable().length, 1);
    await t.clock.advance(1000);
    await t.settle();
    assert.deepEqual(t.cache.unreadable(), [], 'read again by itself');
    assert.equal(await t.cache.relist(forever), 0);
  });

  it('shows a pod it could never read as the lists have it, marked as partial', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    t.control.failStatus = new GrpcError(GrpcCode.Internal, 'broken');
    await t.cache.relist(forever);
    const seen = t.cache.get(UID);
    assert.deepEqual([seen?.partial, seen?.sandboxes[0]?.ready, seen?.containers[0]?.state], [true, true, 'running']);
    assert.deepEqual([t.cache.ready, t.cache.ownerOf('c'), t.cache.unreadable()[0]?.name], [true, UID, 'p']);
    t.control.failStatus = undefined;
    const events: string[] = [];
    t.cache.onChange((_, e) => events.push(e.map((x) => x.type).join()));
    await t.clock.advance(1000);
    await t.cache.relist(forever);
    await t.settle();
    assert.deepEqual([t.cache.get(UID)?.partial, t.cache.get(UID)?.ips, events], [undefined, ['10.0.0.1'], ['']]);
  });

  // The first relist makes the cache ready: a pod that runs and looks absent then would be started a second time.
  it('shows a pod whose first read failed before the first relist and is not tried again yet', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    t.control.failStatus = new GrpcError(GrpcCode.Internal, 'broken');
    await assert.rejects(t.cache.refresh(UID, forever), { message: 'broken' });
    await t.cache.relist(forever);
    assert.deepEqual([t.cache.ready, t.cache.get(UID)?.partial], [true, true]);
    assert.equal(t.cache.get(UID)?.containers[0]?.state, 'running');
  });

  it('shows a pod whose read the runtime left unanswered as it went away, and reads it in full once it is back', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    t.control.failStatus = new GrpcError(GrpcCode.Unavailable, 'away');
    await t.cache.relist(forever);
    assert.deepEqual([t.cache.ready, t.cache.get(UID)?.partial, t.cache.unreadable()], [true, true, []]);
    t.control.failStatus = undefined;
    assert.equal(await t.cache.relist(forever), 1);
    await t.settle();
    assert.deepEqual([t.cache.get(UID)?.partial, t.cache.get(UID)?.ips], [undefined, ['10.0.0.1']]);
  });

  it('tells an end once that a list shows while a read is under way', async () => {
    const t = setup();
    Object.assign(t.world, { sandbox: 'ready', container: ContainerState.CONTAINER_RUNNING });
    t.control.failStatus = new GrpcError(GrpcCode.Internal, 'broken');
    await t.cache.relist(forever);
    t.control.failStatus = undefined;
    const events: string[] = [];
    t.cache.onChange((_, e) => events.push(...e.map((x) => `${x.type} ${x.id}`)));
    t.control.gated = true;
    const read = t.cache.refresh(UID, forever);
    await t.settle();
    t.control.gated = false;
    t.world.container = ContainerState.CONTAINER_EXITED;
    await t.cache.relist(forever);
    await t.release();
    assert.equal((await read).containers[0]?.state, 'exited');
    assert.deepEqual(events, ['ContainerDied c']);
  });

  it('blames nobody while the runtime is away', async () => {
    const t = setup();
    t.control.fail = new GrpcError(GrpcCode.Unavailable, 'away');
    await assert.rejects(t.cache.refresh(UID, forever), { kind: 'unavailable' });
    assert.deepEqual(t.cache.unreadable(), []);
  });

  it('gives up a read after its deadline', async () => {
    const t = setup();
    t.control.gated = true;
    // A runtime that ignores the cancellation altogether must not hold the caller either.
    const read = assert.rejects(t.cache.refresh(UID, forever), { kind: 'deadline' });
    await t.clock.advance(1000);
    await read;
    assert.equal(t.cache.unreadable().length, 1);
  });

  it('never goes back in time, whatever the order of requests and answers', async () => {
    const step = fc.oneof(fc.constant('ask'), fc.constant('release'), fc.constant('change'));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const t = setup();
        t.control.gated = true;
        t.world.sandbox = 'ready';
        const asked: Promise<number>[] = [];
        for (const s of steps) {
          if (s === 'ask') asked.push(t.cache.refresh(UID, forever).then((x) => x.version));
          else if (s === 'release') await t.release();
          else t.world.sandbox = t.world.sandbox === 'ready' ? 'notReady' : 'ready';
        }
        for (let i = 0; i < 4; i++) await t.release();
        const versions = await Promise.all(asked);
        assert.deepEqual(
          versions,
          [...versions].sort((a, b) => a - b),
        );
        const final = t.cache.refresh(UID, forever);
        await t.release();
        assert.equal((await final).sandboxes[0]?.ready, t.world.sandbox === 'ready');
      }),
      { numRuns: 100 },
    );
  });
});
