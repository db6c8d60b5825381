import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import fc from 'fast-check';
import { ApiError } from './api-error.ts';
import { jsonPatch, mergePatch } from './json-patch.ts';
import { mergeSchemaOf } from './merge-schema.ts';
import { parseDocument } from './exchange.ts';
import { sameJson } from './objects.ts';
import { strategicMerge } from './strategic-merge.ts';

const pod = (spec: unknown, status: unknown = {}): unknown => ({ spec, status });
const merge = (original: unknown, patch: unknown): unknown => strategicMerge(original, patch, mergeSchemaOf('Pod'));

const ROWS: [string, unknown, unknown, unknown][] = [
  [
    'adds to a keyed list',
    pod({ containers: [{ name: 'a' }] }),
    { spec: { containers: [{ name: 'b', image: 'x' }] } },
    pod({ containers: [{ name: 'a' }, { name: 'b', image: 'x' }] }),
  ],
  [
    'changes one element',
    pod({ containers: [{ name: 'a', image: '1', tty: true }] }),
    { spec: { containers: [{ name: 'a', image: '2' }] } },
    pod({ containers: [{ name: 'a', image: '2', tty: true }] }),
  ],
  [
    'drops a field of an element',
    pod({ containers: [{ name: 'a', image: '1' }] }),
    { spec: { containers: [{ name: 'a', image: null }] } },
    pod({ containers: [{ name: 'a' }] }),
  ],
  [
    'deletes an element',
    pod({ volumes: [{ name: 'a' }, { name: 'b' }] }),
    { spec: { volumes: [{ name: 'a', $patch: 'delete' }] } },
    pod({ volumes: [{ name: 'b' }] }),
  ],
  [
    'replaces a keyed list',
    pod({ volumes: [{ name: 'a' }, { name: 'b' }] }),
    { spec: { volumes: [{ name: 'c' }, { $patch: 'replace' }] } },
    pod({ volumes: [{ name: 'c' }] }),
  ],
  [
    'replaces a plain list',
    pod({ tolerations: [{ key: 'a' }] }),
    { spec: { tolerations: [{ key: 'b' }] } },
    pod({ tolerations: [{ key: 'b' }] }),
  ],
  [
    'replaces a map',
    pod({ nodeSelector: { a: '1' } }),
    { spec: { nodeSelector: { $patch: 'replace', b: '2' } } },
    pod({ nodeSelector: { b: '2' } }),
  ],
  ['deletes a map', pod({ affinity: { x: 1 } }), { spec: { affinity: { $patch: 'delete' } } }, pod({})],
  [
    'keeps only the retained keys',
    pod({ volumes: [{ name: 'a', emptyDir: {} }] }),
    { spec: { volumes: [{ name: 'a', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/' } }] } },
    pod({ volumes: [{ name: 'a', hostPath: { path: '/' } }] }),
  ],
  [
    'orders',
    pod({}, { conditions: [{ type: 'A' }, { type: 'B' }] }),
    {
      status: {
        '$setElementOrder/conditions': [{ type: 'B' }, { type: 'A' }],
        conditions: [{ type: 'A', status: 'True' }],
      },
    },
    pod({}, { conditions: [{ type: 'B' }, { type: 'A', status: 'True' }] }),
  ],
  [
    'orders without a list',
    pod({}, { conditions: [{ type: 'A' }, { type: 'B' }] }),
    { status: { '$setElementOrder/conditions': [{ type: 'B' }, { type: 'A' }] } },
    pod({}, { conditions: [{ type: 'B' }, { type: 'A' }] }),
  ],
  [
    'keeps strangers behind their neighbours',
    pod({}, { conditions: [{ type: 'A' }, { type: 'X' }, { type: 'B' }] }),
    { status: { '$setElementOrder/conditions': [{ type: 'B' }, { type: 'A' }] } },
    pod({}, { conditions: [{ type: 'B' }, { type: 'A' }, { type: 'X' }] }),
  ],
  [
    'merges sets',
    { metadata: { finalizers: ['a'] } },
    { metadata: { finalizers: ['b', 'a'] } },
    { metadata: { finalizers: ['a', 'b'] } },
  ],
  [
    'takes from sets',
    { metadata: { finalizers: ['a', 'b'] } },
    { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'] } },
    { metadata: { finalizers: ['b'] } },
  ],
  [
    'ports by number',
    pod({ containers: [{ name: 'a', ports: [{ containerPort: 1, name: 'x' }] }] }),
    { spec: { containers: [{ name: 'a', ports: [{ containerPort: 1, name: 'y' }, { containerPort: 2 }] }] } },
    pod({ containers: [{ name: 'a', ports: [{ containerPort: 1, name: 'y' }, { containerPort: 2 }] }] }),
  ],
  [
    'nulls of a new object are not stored',
    pod({}),
    { spec: { securityContext: { a: null, b: 1 } } },
    pod({ securityContext: { b: 1 } }),
  ],
];

for (const [name, original, patch, expected] of ROWS)
  test(`strategic merge: ${name}`, () => assert.deepEqual(merge(original, patch), expected));

test('strategic merge refuses an element without its key and an order that does not fit', () => {
  assert.throws(
    () => merge(pod({}), { spec: { containers: [{ image: 'x' }] } }),
    /does not contain declared merge key: name/,
  );
  const patch = { status: { '$setElementOrder/conditions': [{ type: 'A' }], conditions: [{ type: 'B' }] } };
  assert.throws(() => merge(pod({}), patch), /does not match \$setElementOrder/);
});

test('merge patch follows RFC 7386', () => {
  const rows: [unknown, unknown, unknown][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [1] }, { a: [2] }, { a: [2] }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    [['a'], { a: 'b' }, { a: 'b' }],
  ];
  for (const [target, patch, expected] of rows) assert.deepEqual(mergePatch(target, patch), expected);
});

test('a JSON patch of things that are no operations', () => {
  for (const operation of [null, 1, 'x']) assert.throws(() => jsonPatch({}, [operation]), { code: 400 });
});

test('JSON patch operations', () => {
  const run = (document: unknown, ...operations: unknown[]): unknown => jsonPatch(document, operations);
  assert.deepEqual(run({ a: [1, 2] }, { op: 'add', path: '/a/1', value: 9 }), { a: [1, 9, 2] });
  assert.deepEqual(run({ a: [1] }, { op: 'add', path: '/a/-', value: 2 }), { a: [1, 2] });
  assert.deepEqual(
    run({ 'x/y': 1, 'a~b': 2 }, { op: 'remove', path: '/x~1y' }, { op: 'replace', path: '/a~0b', value: 3 }),
    { 'a~b': 3 },
  );
  assert.deepEqual(run({ a: 1 }, { op: 'move', from: '/a', path: '/b' }), { b: 1 });
  assert.deepEqual(
    run({ a: { x: 1 } }, { op: 'copy', from: '/a', path: '/b' }, { op: 'replace', path: '/b/x', value: 2 }),
    { a: { x: 1 }, b: { x: 2 } },
  );
  for (const operation of [
    { op: 'remove', path: '/none' },
    { op: 'replace', path: '/none', value: 1 },
    { op: 'test', path: '/a', value: 2 },
    { op: 'add', path: '/a/b/c', value: 1 },
    { op: 'nonsense', path: '/a' },
    { op: 'add', path: 'a' },
  ])
    assert.throws(() => run({ a: 1 }, operation), ApiError);
});

/** JSON text, because in a literal `__proto__` is the prototype and in a body it is a field. */
const HOSTILE: [string, (target: unknown, patch: unknown) => unknown, string][] = [
  ['merge patch', mergePatch, '{"__proto__": {"polluted": 1}, "metadata": {"__proto__": {"polluted": 1}}}'],
  ['merge patch with an escape', mergePatch, String.raw`{"\u005f_proto__": {"polluted": 1}}`],
  ['strategic merge', merge, '{"__proto__": {"polluted": 1}, "spec": {"__proto__": {"polluted": 1}}}'],
  ['strategic replace', merge, '{"spec": {"$patch": "replace", "__proto__": {"polluted": 1}}}'],
  ['strategic order', merge, '{"$setElementOrder/__proto__": ["polluted"], "$deleteFromPrimitiveList/__proto__": [1]}'],
  ['JSON patch, add', jsonPatch, '[{"op": "add", "path": "/metadata/__proto__/polluted", "value": 1}]'],
  ['JSON patch, replace', jsonPatch, '[{"op": "replace", "path": "/__proto__", "value": {"polluted": 1}}]'],
  ['JSON patch, the field itself', jsonPatch, '[{"op": "add", "path": "/__proto__", "value": {"polluted": 1}}]'],
  ['JSON patch, constructor', jsonPatch, '[{"op": "add", "path": "/constructor/prototype/polluted", "value": 1}]'],
  ['JSON patch, remove', jsonPatch, '[{"op": "remove", "path": "/metadata/__proto__/toString"}]'],
  ['JSON patch, move', jsonPatch, '[{"op": "move", "from": "/metadata", "path": "/__proto__/polluted"}]'],
  ['JSON patch, copy', jsonPatch, '[{"op": "copy", "from": "/__proto__", "path": "/metadata/polluted"}]'],
  ['JSON patch, value', jsonPatch, '[{"op": "add", "path": "/spec", "value": {"__proto__": {"polluted": 1}}}]'],
];

for (const [name, apply, text] of HOSTILE)
  test(`a patch cannot reach what all objects share: ${name}`, () => {
    for (const patch of [JSON.parse(text) as unknown, parseDocument(text, 'application/json')]) {
      let result: unknown = {};
      try {
        result = apply({ metadata: {}, spec: {}, status: {} }, patch);
      } catch (err) {
        assert.ok(err instanceof ApiError);
      }
      assert.equal(({} as { polluted?: unknown }).polluted, undefined);
      assert.equal(typeof {}.toString, 'function');
      const parts = [result, ...Object.values(result as object)] as { polluted?: unknown }[];
      for (const part of parts) assert.equal(part.polluted, undefined, JSON.stringify(result));
    }
  });

test('a YAML body has no prototype either', () => {
  const parsed = parseDocument('metadata: {__proto__: {polluted: 1}}', 'application/yaml') as { metadata: object };
  assert.equal((parsed.metadata as { polluted?: unknown }).polluted, undefined);
});

test('a label named as something all objects have is a difference', () => {
  assert.equal(sameJson({}, { constructor: 'x' }), false);
  assert.equal(sameJson({ constructor: 'x' }, {}), false);
});

test('patches never change what they are applied to', () => {
  const json = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(fc.dictionary(fc.string(), json), fc.dictionary(fc.string(), json), (target, patch) => {
      const before = JSON.stringify(target);
      mergePatch(target, patch);
      try {
        strategicMerge(target, patch, mergeSchemaOf('Pod'));
      } catch (err) {
        assert.ok(err instanceof ApiError);
      }
      assert.equal(JSON.stringify(target), before);
    }),
    { numRuns: 200 },
  );
});
