import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../core/ids.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import { silentLogger } from '../lib/logger.ts';
import { ContainerPruner } from './container-pruner.ts';

const nothing = { removed: 0, failed: 0, left: 0 };

function setup(keep: number, removable: boolean, fails = false) {
  const did: string[] = [];
  const pods = { removable, quiet: Promise.resolve() };
  const act = async (what: string): Promise<typeof nothing> => {
    did.push(what);
    if (fails) throw new Error('busy');
    return nothing;
  };
  const pruner = new ContainerPruner(
    {
      observed: { get: (uid) => (uid === 'gone' ? undefined : aliveSnapshot(uid)) },
      contentRemovable: () => pods.removable,
      collector: {
        prune: ({ uid }, n) => act(`prune ${uid} to ${n}`),
        whenQuiet: () => pods.quiet,
        removeContainersOf: ({ uid }) => act(`remove ${uid}`),
      },
      log: silentLogger,
    },
    keep,
  );
  const stop = new AbortController();
  const running = pruner.run(stop.signal);
  const end = async (): Promise<readonly string[]> => {
    await new Promise(setImmediate);
    stop.abort();
    await running;
    return did;
  };
  return { pruner, end, pods, did };
}

const died = [{ type: 'ContainerDied', containerName: 'c' }];
const rows: [what: string, keep: number, removable: boolean, uid: string, events: typeof died, did: string[]][] = [
  ['a death', 2, false, 'a', died, ['prune a to 2']],
  ['the last instance stays', 0, false, 'a', died, ['prune a to 1']],
  ['a deleted pod keeps none', 2, true, 'a', died, ['remove a']],
  ['a start is no death', 1, false, 'a', [{ type: 'ContainerStarted', containerName: 'c' }], []],
  ['a pod that is gone', 1, false, 'gone', died, []],
];
for (const [what, keep, removable, uid, events, did] of rows)
  test(what, async () => {
    const t = setup(keep, removable);
    t.pruner.observed(podUid(uid), events);
    assert.deepEqual(await t.end(), did);
  });

test('an evicted pod that has stopped keeps none', async () => {
  const t = setup(1, true);
  t.pruner.evicted(podUid('a'));
  assert.deepEqual(await t.end(), ['remove a']);
});

test('what cannot be removed is left for later', async () => {
  const t = setup(1, false, true);
  t.pruner.observed(podUid('a'), died);
  assert.deepEqual(await t.end(), ['prune a to 1']);
});

test('what is left of a deleted pod waits until no others start or stop', async () => {
  const t = setup(1, true);
  const crowd = Promise.withResolvers<void>();
  t.pods.quiet = crowd.promise;
  t.pruner.observed(podUid('a'), died);
  await new Promise(setImmediate);
  assert.deepEqual(t.did, []);
  crowd.resolve();
  assert.deepEqual(await t.end(), ['remove a']);
});

test('a pod that comes back meanwhile keeps its last instance', async () => {
  const t = setup(1, true);
  const crowd = Promise.withResolvers<void>();
  t.pods.quiet = crowd.promise;
  t.pruner.observed(podUid('a'), died);
  await new Promise(setImmediate);
  t.pods.removable = false;
  crowd.resolve();
  assert.deepEqual(await t.end(), ['prune a to 1']);
});
