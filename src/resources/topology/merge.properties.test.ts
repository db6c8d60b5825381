// Random hints of up to four providers, 100,000 merges: what must hold of every result, whatever was said.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom, type Random } from '../../lib/random.fixture.ts';
import type { HintsByResource, TopologyHint } from './hint-provider.ts';
import { mergeHints, type TopologyPolicyName } from './merge.ts';
import { randomRuns } from '../../../test/harness/random-runs.ts';

const STEPS = randomRuns(100_000);
const NODES = [0, 1, 2, 3];
const POLICIES: readonly TopologyPolicyName[] = ['best-effort', 'restricted', 'single-numa-node'];

/** No opinion, none possible, or some sets of nodes. */
function randomHints(random: Random): readonly TopologyHint[] | undefined {
  if (random(6) === 0) return undefined;
  return Array.from({ length: random(5) }, () => {
    const numaNodes = NODES.filter(() => random(2) === 0);
    return { numaNodes: numaNodes.length === 0 ? [random(NODES.length)] : numaNodes, preferred: random(2) === 0 };
  });
}

const randomProvider = (random: Random): HintsByResource =>
  Object.fromEntries(Array.from({ length: random(3) }, (_, i) => [`r${i}`, randomHints(random)]));

/** Whether every resource has a hint that allows all these nodes. */
const isAllowed = (providers: readonly HintsByResource[], nodes: readonly number[]): boolean =>
  providers.every((hints) =>
    Object.values(hints).every(
      (list) => list === undefined || list.some((h) => nodes.every((node) => h.numaNodes?.includes(node) ?? true)),
    ),
  );

test('merged hints: admitted only where every provider agreed, in whatever order they were asked', () => {
  const random = randomFrom(4);
  let admitted = 0;
  for (let step = 0; step < STEPS; step++) {
    const policy = POLICIES[random(POLICIES.length)] ?? 'best-effort';
    const providers = Array.from({ length: 1 + random(4) }, () => randomProvider(random));
    const options = { policy, nodes: NODES, distances: undefined };
    const { hint, admit } = mergeHints(providers, options);
    assert.deepEqual(mergeHints(providers.toReversed(), options), { hint, admit }, 'the order does not matter');
    assert.equal(admit, policy === 'best-effort' || hint.preferred);
    if (hint.numaNodes !== undefined) {
      assert.ok(hint.numaNodes.length > 0, 'never no node at all');
      if (policy === 'single-numa-node') assert.equal(hint.numaNodes.length, 1);
      if (hint.preferred) assert.ok(isAllowed(providers, hint.numaNodes), 'nobody said otherwise');
    }
    if (admit && policy !== 'best-effort') admitted++;
  }
  assert.ok(admitted > STEPS / 20, `${admitted} admissions are too few to mean anything`);
});
