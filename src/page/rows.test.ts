// The rows of the page stay as they are while their pods do, and go with them.
import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setImmediate as turn } from 'node:timers/promises';
import { it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import type { PagePorts } from './ports.ts';
import { PageViews } from './views.ts';

const podNumber = (i: number): Pod => ({
  metadata: { name: `p${i}`, namespace: 'd', uid: `u${i}` },
  spec: { containers: [{ name: 'c', image: 'i' }] },
  status: { phase: 'Succeeded', conditions: [], containerStatuses: [] },
});

function open(pods: Pod[]): PageViews {
  const ports = { clock: new ManualClock(), pods: { all: () => pods, byName: () => undefined, max: 110 } };
  return new PageViews(ports as unknown as PagePorts, { write: false });
}

it('an unchanged pod has the row it had; a changed one has another', () => {
  const pods = [podNumber(1)];
  const views = open(pods);
  const rowNow = () => views.rowsOf(new Set(['u1']))[0];
  const first = rowNow();
  assert.equal(rowNow(), first);
  pods[0] = podNumber(1);
  assert.notEqual(rowNow(), first);
});

it('nothing is kept of pods that are gone', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const pods: Pod[] = [];
  const views = open(pods);
  const seen: WeakRef<object>[] = [];
  for (let i = 0; i < 50; i++) {
    pods[0] = podNumber(i);
    seen.push(new WeakRef(pods[0].spec));
    assert.equal(views.rowsOf(new Set([`u${i}`])).length, 1);
  }
  pods.length = 0;
  await turn();
  collect();
  assert.equal(seen.filter((pod) => pod.deref() !== undefined).length, 0);
  assert.deepEqual(views.rowsOf(new Set(['u1'])), []);
});
