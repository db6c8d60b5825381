// The README's figures are those of the history, to the letter.
// runs: gate
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { readRuns, type Run } from '../../bench/history.ts';
import { withFigures } from '../../bench/readme.ts';

const README = readFileSync(join(import.meta.dirname, '..', '..', 'README.md'), 'utf8');

it('README.md shows what was measured last (npm run bench -- readme)', () => {
  assert.equal(withFigures(README, readRuns()), README);
});

it('a full run counts before a newer quick one; what is missed says so', () => {
  const machine = { cpu: 'X', cores: 2, loadBefore: 0, loadAfter: 1 };
  const run = (at: string, quick: boolean, value: number, ratio: number): Run => ({
    at,
    node: 'v1',
    machine,
    form: 'bundle',
    quick,
    rows: [{ key: 'serial.ready.p50', value, unit: 'ms', ratio, wanted: { atMost: 1.5 }, go: 3.8 }],
  });
  const text = withFigures(README, [
    run('2026-01-01T10:00:00Z', false, 188, 1.6),
    run('2026-01-02T10:00:00Z', true, 100, 1),
  ]);
  assert.match(text, /\| `serial` \| 188 ms \| 1\.60 × \| \*\*≤ 1\.5 ×, missed\*\* \| 3\.8 × \| 1 \|/);
  assert.doesNotMatch(text, /100 ms/);
});
