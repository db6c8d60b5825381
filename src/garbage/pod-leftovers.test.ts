// What is removed of pods that are gone; one thing that is stuck keeps nothing else.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid, type PodUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import { silentLogger } from '../lib/logger.ts';
import { PodLeftovers, type PodLeftoversDeps } from './pod-leftovers.ts';

const never = new AbortController().signal;
const uids = (...names: string[]): PodUid[] => names.map(podUid);
const isInUse = (uid: PodUid): boolean => uid === 'used';

function setup(stuck: string, alive: readonly string[] = [], mounted: readonly string[] = []) {
  const did: string[] = [];
  const act = async (what: string, of: string): Promise<void> => {
    if (of === stuck) throw new Error('device or resource busy');
    did.push(`${what} ${of}`);
  };
  const all = uids('used', 'busy', 'mounted', 'gone');
  const deps: PodLeftoversDeps = {
    records: [{ keepOnly: (known) => void did.push(`keep ${[...known].join(' ')}`) }],
    observed: { get: (uid) => (alive.includes(uid) ? aliveSnapshot(uid) : undefined) },
    containers: {
      whenQuiet: async () => void did.push('quiet'),
      removeContainersOf: ({ uid }) => act('containers', uid),
    },
    mirrors: { removeMirror: (mirror) => act('mirror', mirror.metadata.name) },
    directories: { list: async () => all, removeOrphan: (uid) => act('directory', uid) },
    volumes: { removeUnknown: () => undefined, hasMounts: (uid) => mounted.includes(uid) },
    cgroups: {
      listPodUids: async () => all,
      reduceToMinimum: (uid) => act('reduce', uid),
      destroy: (uid) => act('destroy', uid),
    },
    onSwept: (cleaned, failed) => void did.push(`swept ${cleaned} ${failed}`),
    log: silentLogger,
  };
  return { leftovers: new PodLeftovers(deps), did };
}

test('a busy cgroup does not keep the others; one with mounts only stops competing', async () => {
  const t = setup('busy', [], ['mounted']);
  await t.leftovers.removeCgroups(isInUse, never);
  assert.deepEqual(t.did, ['reduce mounted', 'destroy gone']);
});

test('directories go unless their pod is in use, alive or has mounts', async () => {
  const t = setup('busy', ['gone'], ['mounted']);
  await t.leftovers.removeDirectories('found', isInUse, never);
  assert.deepEqual(t.did, ['swept 0 1']);
  const other = setup('', [], ['mounted']);
  await other.leftovers.removeDirectories('found', isInUse, never);
  assert.deepEqual(other.did, ['directory busy', 'directory gone', 'swept 2 0']);
});

test('directories of pods known to be gone go without a listing', async () => {
  const t = setup('', [], ['mounted']);
  await t.leftovers.removeDirectories(uids('used', 'mounted', 'gone'), isInUse, never);
  await t.leftovers.removeDirectories([], isInUse, never);
  assert.deepEqual(t.did, ['directory gone', 'swept 1 0']);
});

test('mirror pods and dead containers go one by one', async () => {
  const t = setup('stuck', ['a', 'used']);
  const mirror = (name: string): Pod => ({ metadata: { name }, spec: { containers: [] } });
  await t.leftovers.removeMirrors([mirror('stuck'), mirror('m')], never);
  await t.leftovers.removeContainers([], isInUse, never);
  await t.leftovers.removeContainers(uids('a', 'unknown', 'used'), isInUse, never);
  t.leftovers.dropRecords(new Set(uids('a')));
  assert.deepEqual(t.did, ['mirror m', 'quiet', 'containers a', 'keep a']);
});

test('a pass ends with the agent', async () => {
  const stop = new AbortController();
  const t = setup('busy');
  stop.abort();
  await assert.rejects(t.leftovers.removeCgroups(isInUse, stop.signal));
});
