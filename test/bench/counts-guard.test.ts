// runs: gate
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Counted, Counts } from '../../bench/counts/counts.ts';
import { grown } from '../../bench/counts/guard.ts';

const counts = (more: Partial<Counts> = {}): Counts => ({
  criCalls: 6,
  apiRequests: 7,
  allocatedKb: 4000,
  contextSwitches: 200,
  calls: {},
  ...more,
});
const counted = (start: Partial<Counts>, stop: Partial<Counts> = {}): Counted => ({
  start: counts(start),
  stop: counts(stop),
});

const rows: readonly (readonly [string, Counted, readonly string[]])[] = [
  ['nothing changed', counted({}), []],
  ['one call more for a start', counted({ criCalls: 7 }), ['criCalls per start grew from 6 to 7']],
  ['one request more for a stop', counted({}, { apiRequests: 8 }), ['apiRequests per stop grew from 7 to 8']],
  ['less is no finding', counted({ criCalls: 4 }), []],
  ['allocations and switches depend on the machine', counted({ contextSwitches: 900, allocatedKb: 5000 }), []],
];
for (const [what, now, findings] of rows) it(what, () => assert.deepEqual(grown(counted({}), now), findings));
