import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClusterTrustBundle } from '../core/node.ts';
import { abortable, aborted } from '../lib/abort.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { TrustBundleWatch } from './trust-bundle-watch.ts';

const never = new AbortController().signal;
const bundle = (name: string): ClusterTrustBundle => ({ metadata: { name }, spec: { trustBundle: '' } });

function setup(synced: boolean, before?: readonly ClusterTrustBundle[]) {
  const clock = new ManualClock();
  let watching = false;
  const watch = new TrustBundleWatch(
    clock,
    {
      name: 'trust-bundle-watch',
      synced,
      whenSynced: (signal) => (synced ? Promise.resolve() : abortable(signal, new Promise<never>(() => undefined))),
      store: { values: () => [bundle('now')] },
      run: (signal) => {
        watching = true;
        return aborted(signal);
      },
    },
    () => before,
  );
  return { clock, watch, watching: () => watching };
}

for (const [what, synced, before, want] of [
  ['as the API server has them', true, [bundle('before')], ['now']],
  ['as they were before, when it does not answer', false, [bundle('before')], ['before']],
  ['unknown, when nobody ever said', false, undefined, undefined],
] as const)
  test(`bundles ${what}`, async () => {
    const t = setup(synced, before);
    const asked = t.watch.bundles(never);
    await t.clock.advance(1000);
    assert.deepEqual(
      (await asked)?.map((b) => b.metadata.name),
      want,
    );
  });

test('nothing is watched before somebody asks', async () => {
  const t = setup(true);
  const stop = new AbortController();
  const running = t.watch.run(stop.signal);
  await t.clock.advance(0);
  assert.equal(t.watching(), false);
  await t.watch.bundles(never);
  await t.clock.advance(0);
  assert.equal(t.watching(), true);
  stop.abort();
  await running;
});
