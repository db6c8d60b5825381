import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from './node.ts';
import type { NodeSelectorTerm, Pod } from './pod.ts';
import { matchesLabelSelector, matchesNode, matchesNodeTerms, tolerates, untoleratedTaint } from './selectors.ts';

const node = (labels: Record<string, string> = {}): Node => ({ metadata: { name: 'n1', labels } });
const pod = (spec: Partial<Pod['spec']>): Pod => ({ metadata: { name: 'p' }, spec: { containers: [], ...spec } });

test('label selectors', () => {
  const labels = { app: 'web', tier: 'a' };
  const rows: [Parameters<typeof matchesLabelSelector>[0], boolean][] = [
    [undefined, false],
    [{}, true],
    [{ matchLabels: { app: 'web' } }, true],
    [{ matchLabels: { app: 'db' } }, false],
    [{ matchExpressions: [{ key: 'app', operator: 'In', values: ['db', 'web'] }] }, true],
    [{ matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] }, false],
    [{ matchExpressions: [{ key: 'gone', operator: 'NotIn', values: ['web'] }] }, true],
    [{ matchExpressions: [{ key: 'tier', operator: 'Exists' }] }, true],
    [{ matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] }, false],
    [{ matchExpressions: [{ key: 'constructor', operator: 'DoesNotExist' }] }, true],
    [{ matchExpressions: [{ key: 'tier', operator: 'Gt', values: ['0'] }] }, false],
    [{ matchLabels: { app: 'web' }, matchExpressions: [{ key: 'x', operator: 'Exists' }] }, false],
  ];
  for (const [selector, wanted] of rows) assert.equal(matchesLabelSelector(selector, labels), wanted);
});

test('node selector terms', () => {
  const n = node({ cpu: '8', zone: 'a' });
  const rows: [NodeSelectorTerm[], boolean][] = [
    [[], false],
    [[{}], false],
    [[{}, { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }], true],
    [[{ matchExpressions: [{ key: 'cpu', operator: 'Gt', values: ['7'] }] }], true],
    [[{ matchExpressions: [{ key: 'cpu', operator: 'Gt', values: ['8'] }] }], false],
    [[{ matchExpressions: [{ key: 'cpu', operator: 'Lt', values: ['9'] }] }], true],
    [[{ matchExpressions: [{ key: 'cpu', operator: 'Lt', values: ['nine'] }] }], false],
    [[{ matchExpressions: [{ key: 'zone', operator: 'Gt', values: ['1'] }] }], false],
    [[{ matchExpressions: [{ key: 'zone', operator: 'Near', values: ['a'] }] }], false],
    [[{ matchExpressions: [{ key: 'constructor', operator: 'Exists' }] }], false],
    [[{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }], true],
    [[{ matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['n1'] }] }], false],
    [[{ matchFields: [{ key: 'spec.x', operator: 'In', values: ['n1'] }] }], false],
    [
      [
        {
          matchExpressions: [{ key: 'zone', operator: 'Exists' }],
          matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n2'] }],
        },
      ],
      false,
    ],
  ];
  for (const [terms, wanted] of rows) assert.equal(matchesNodeTerms(terms, n), wanted, JSON.stringify(terms));
});

test('a node must fit both the selector and the affinity', () => {
  const n = node({ disk: 'ssd', zone: 'a' });
  const inZone = (zone: string): Pod['spec']['affinity'] => ({
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }],
      },
    },
  });
  assert.equal(matchesNode(pod({}), n), true);
  assert.equal(matchesNode(pod({ nodeSelector: { disk: 'hdd' } }), n), false);
  assert.equal(matchesNode(pod({ nodeSelector: { disk: 'ssd' }, affinity: inZone('a')! }), n), true);
  assert.equal(matchesNode(pod({ nodeSelector: { disk: 'ssd' }, affinity: inZone('b')! }), n), false);
  // What a server sends as null: none of no terms matches.
  const none = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } };
  assert.equal(matchesNode(pod({ affinity: none }), n), false);
});

test('tolerations', () => {
  const taint = { key: 'k', value: 'v', effect: 'NoExecute' };
  assert.equal(tolerates({ operator: 'Exists' }, taint), true);
  assert.equal(tolerates({ key: 'k', value: 'v' }, taint), true);
  assert.equal(tolerates({ key: 'k', operator: 'Equal', value: 'w' }, taint), false);
  assert.equal(tolerates({ key: 'k', operator: 'Exists', effect: 'NoSchedule' }, taint), false);
  assert.equal(tolerates({ key: 'j', operator: 'Exists' }, taint), false);
  assert.equal(tolerates({ key: 'k', operator: 'Gt', value: '1' }, taint), false);
  const tainted: Node = { ...node(), spec: { taints: [{ key: 'a', effect: 'NoSchedule' }, taint] } };
  assert.equal(untoleratedTaint(pod({}), tainted, ['NoExecute'])?.key, 'k');
  assert.equal(
    untoleratedTaint(pod({ tolerations: [{ key: 'k', operator: 'Exists' }] }), tainted, ['NoExecute']),
    undefined,
  );
});

test('nodes without labels or taints, taints without values', () => {
  const bare: Node = { metadata: { name: 'n1' } };
  assert.ok(matchesNode(pod({}), bare));
  assert.ok(!matchesNode(pod({ nodeSelector: { a: 'b' } }), bare));
  assert.ok(matchesNodeTerms([{ matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }], bare));
  assert.equal(untoleratedTaint(pod({}), bare, ['NoSchedule']), undefined);
  const taint = { key: 'k', effect: 'NoSchedule' } as const;
  assert.ok(tolerates({ key: 'k' }, taint));
  assert.ok(!tolerates({ key: 'k', value: 'v' }, taint));
  assert.ok(tolerates({ key: 'k', value: 'v' }, { ...taint, value: 'v' }));
  assert.ok(!tolerates({ key: 'k', operator: 'Strange' as never }, taint));
});
