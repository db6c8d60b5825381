// A pod's start and stop on the runtime in memory cost no more calls than those on record.
// runs: gate, default ports
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { countPods } from '../../bench/counts/counts.ts';
import { countsTable, grown, recorded } from '../../bench/counts/guard.ts';

const KUBELET = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');
const PODS = 60;

it('starts and stops cost no more than on record', async (t) => {
  const before = recorded();
  const now = await countPods({ command: KUBELET, env: { KUBELET_TS_SOURCE: '1' }, pods: PODS });
  assert.deepEqual(grown(before, now), [], countsTable(now, before));
  const { criCalls, apiRequests, allocatedKb } = now.start;
  t.diagnostic(
    `a start: ${criCalls} CRI calls, ${apiRequests} API requests, ${allocatedKb} kB; a stop: ${now.stop.criCalls} CRI calls`,
  );
});
