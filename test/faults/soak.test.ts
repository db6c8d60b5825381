// Hundreds of pods come and go on a whole kubelet with a runtime in memory: nothing may be left of them in the process.
// `npm run bench -- soak` does the same with 20,000.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { soak } from '../../bench/soak/soak.ts';
import { startSoakWorld } from '../../bench/soak/soak-world.ts';

const PODS = Number(process.env['SOAK_PODS'] ?? 500);

it(`nothing is left of ${PODS} pods`, async (t) => {
  const command = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');
  const world = await startSoakWorld({ runtime: 'fake', command, env: { KUBELET_TS_SOURCE: '1' } });
  try {
    const said = (line: string): void => t.diagnostic(line);
    const lives = { pods: PODS, warmUp: PODS / 2, looks: 1, atATime: 16, minLifeMs: 0, tidy: true };
    // In so short a run what is kept of past pods on purpose (events, waterfalls) has not stopped growing.
    const { leftovers } = await soak(world, { ...lives, moreMemory: 1.2, say: said });
    assert.deepEqual(leftovers, []);
  } finally {
    await world.stop();
  }
});
