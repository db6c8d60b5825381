import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readVectors } from '../vectors.fixture.ts';
import type { HintsByResource } from './hint-provider.ts';
import { mergeHints, type MergeOptions } from './merge.ts';

type MergeVector = {
  readonly id: number;
  readonly policy: MergeOptions['policy'];
  readonly preferClosest: boolean;
  readonly nodes: readonly number[];
  readonly distances?: readonly (readonly number[])[];
  readonly providers: readonly (Readonly<Record<string, readonly (readonly [number, number])[] | null>> | null)[];
  readonly result: { readonly mask: readonly number[] | null; readonly preferred: boolean; readonly admit: boolean };
};

const nodesIn = (mask: number): readonly number[] =>
  Array.from({ length: 31 }, (_, n) => n).filter((n) => (mask & (1 << n)) !== 0);

const hintsOf = (provider: MergeVector['providers'][number]): HintsByResource =>
  Object.fromEntries(
    Object.entries(provider ?? {}).map(([name, list]) => [
      name,
      list?.map(([mask, preferred]) => ({ numaNodes: nodesIn(mask), preferred: preferred === 1 })),
    ]),
  );

test('hints are merged as upstream merges them', () => {
  const cases = readVectors<MergeVector>('topology-merge');
  assert.ok(cases.length > 0);
  for (const { id, policy, preferClosest, nodes, distances, providers, result } of cases) {
    const rows = new Map(nodes.map((node, at) => [node, distances?.[at] ?? []]));
    const { hint, admit } = mergeHints(providers.map(hintsOf), {
      policy,
      nodes,
      distances: preferClosest ? rows : undefined,
    });
    assert.deepEqual(
      { mask: hint.numaNodes ?? null, preferred: hint.preferred, admit },
      { mask: result.mask, preferred: result.preferred, admit: result.admit },
      `case ${id}`,
    );
  }
});
