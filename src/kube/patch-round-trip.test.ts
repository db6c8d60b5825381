// Whatever two statuses look like: the patch, applied as an API server applies it, turns one into the other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mergeSchemaOf } from '../devcluster/api/merge-schema.ts';
import { strategicMerge } from '../devcluster/api/strategic-merge.ts';
import { plain, POD_MERGE_KEYS, strategicMergeDiff, type JsonObject } from './patch.ts';

const word = fc.constantFrom('a', 'b', 'c', 'd');
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const condition = fc.record({
  type: word,
  status: fc.constantFrom('True', 'False'),
  reason: optional(word),
  lastProbeTime: fc.constant(null),
  observedGeneration: optional(fc.integer({ min: 1, max: 3 })),
});
const status = fc.record({
  phase: optional(word),
  message: optional(word),
  conditions: fc.uniqueArray(condition, { selector: (c) => c.type, maxLength: 4 }),
  podIPs: fc.uniqueArray(fc.record({ ip: word }), { selector: (c) => c.ip, maxLength: 3 }),
  containerStatuses: fc.array(
    fc.record({ name: word, ready: fc.boolean(), state: fc.record({ running: optional(fc.record({ at: word })) }) }),
    { maxLength: 3 },
  ),
  resources: optional(fc.record({ requests: optional(fc.dictionary(word, word, { maxKeys: 3 })) })),
});

/** Null inside a keyed element and an absent field are the same to the server. */
const withoutNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).filter(([, v]) => v !== null && v !== undefined);
  return Object.fromEntries(entries.map(([k, v]) => [k, withoutNulls(v)]));
};

test('diff and apply are inverse', () => {
  fc.assert(
    fc.property(status, status, (before, after) => {
      const [a, b] = [plain({ status: before }), plain({ status: after })] as [JsonObject, JsonObject];
      const patch = strategicMergeDiff(a, b, POD_MERGE_KEYS);
      const got = strategicMerge(structuredClone(a), patch, mergeSchemaOf('Pod'));
      const clean = (v: unknown): unknown => withoutNulls(plain(v));
      assert.deepEqual(clean(got), clean(b));
    }),
    { numRuns: 500 },
  );
});

test('equal objects give an empty patch', () => {
  fc.assert(fc.property(status, (s) => assert.deepEqual(strategicMergeDiff({ s }, structuredClone({ s }), {}), {})));
});
