import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_SOURCE, uidOf, type Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { MirrorKeeper } from './mirror-keeper.ts';

const pod = (uid: string, source: string): Pod => ({
  metadata: { name: uid, uid, annotations: { [CONFIG_SOURCE]: source } },
  spec: { containers: [] },
});

const AWAY = new KubeletError('unavailable', 'the API server is away');

function setup(failures = 0, failure: Error = AWAY) {
  const clock = new ManualClock();
  const pods = [pod('static', 'file'), pod('other', 'api')];
  const reconciled: string[] = [];
  const keeper = new MirrorKeeper({
    mirrors: {
      reconcile: async (p) => {
        reconciled.push(uidOf(p));
        if (failures-- > 0) throw failure;
      },
    },
    desired: { get: (uid) => pods.find((p) => uidOf(p) === uid), all: () => pods },
    clock,
    log: silentLogger,
  });
  const stop = new AbortController();
  const running = keeper.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
    assert.equal(clock.pending, 0);
  };
  return { clock, pods, reconciled, keeper, end };
}

test('with the first sight of the node static pods get their mirrors, once', async () => {
  const t = setup();
  t.keeper.nodeSeen(undefined);
  await t.clock.advance(1);
  assert.deepEqual(t.reconciled, []);
  t.keeper.nodeSeen({});
  t.keeper.nodeSeen({});
  await t.clock.advance(1);
  assert.deepEqual(t.reconciled, ['static']);
  await t.end();
});

test('tries again until it worked, or the pod is gone', async () => {
  const t = setup(2);
  t.keeper.keep(t.pods[0]!);
  await t.clock.advance(4000);
  assert.equal(t.reconciled.length, 3);
  await t.clock.advance(10_000);
  assert.equal(t.reconciled.length, 3);
  await t.end();
});

test('a server that refuses a mirror is asked ever more rarely, and at once when its pod is synced', async () => {
  const t = setup(Infinity, new KubeletError('denied', 'no', { detail: { status: 403 } }));
  t.keeper.keep(t.pods[0]!);
  await t.clock.advance(600_000);
  const { length } = t.reconciled;
  assert.ok(length > 10 && length < 20, `${length} tries in ten minutes`);
  t.keeper.keep(t.pods[0]!);
  await t.clock.advance(0);
  assert.equal(t.reconciled.length, length + 1);
  await t.end();
});
