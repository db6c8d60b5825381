// A node lives through simulated faults of fresh seeds for a few seconds; `simulation.test.ts` does more of it.
// runs: gate, spare time
import { it } from 'node:test';
import { limitOf, liveThroughFreshSeeds } from './process.ts';

const SECONDS = 10;

it('lives through faults of fresh seeds', { timeout: limitOf(SECONDS) }, (t) =>
  liveThroughFreshSeeds(t, SECONDS, 'stale,csi,devices'),
);
