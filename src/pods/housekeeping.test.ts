// What is taken away, and above all what is not: pods come while a pass goes on.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid, type PodUid } from '../core/ids.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Housekeeping, type Leftovers } from './housekeeping.ts';

function setup(here: readonly PodUid[]) {
  const clock = new ManualClock();
  const known = new Set<PodUid>();
  const removed: string[] = [];
  const gate = Promise.withResolvers<void>();
  const remove =
    (what: string) =>
    async (isInUse: (uid: PodUid) => boolean): Promise<void> =>
      void removed.push(...here.filter((uid) => !isInUse(uid)).map((uid) => `${what} ${uid}`));
  const leftovers: Leftovers = {
    ready: () => true,
    dropStatuses: () => undefined,
    removeMirrors: () => gate.promise,
    removeContainers: async () => undefined,
    removeDirectories: remove('directory'),
    removeCgroups: remove('cgroup'),
  };
  const housekeeping = new Housekeeping({
    store: { all: () => [], mirrors: () => [], staticOf: () => undefined, has: (uid) => known.has(uid) },
    workers: {
      uids: () => [],
      stateOf: () => undefined,
      wantsRestart: () => false,
      forget: () => undefined,
      stop: () => undefined,
    },
    observed: { all: () => [] },
    leftovers,
    clock,
    log: silentLogger,
  });
  return { clock, known, removed, gate, housekeeping };
}

describe('Housekeeping', () => {
  it('leaves a pod alone that came after the pass had begun', async () => {
    const t = setup([podUid('orphan'), podUid('fresh')]);
    const stop = new AbortController();
    const running = t.housekeeping.run(stop.signal);
    t.housekeeping.wake();
    await t.clock.advance(100);
    t.known.add(podUid('fresh'));
    t.gate.resolve();
    await t.clock.advance(100);
    assert.deepEqual(t.removed, ['directory orphan', 'cgroup orphan']);
    stop.abort();
    await running;
  });
});
