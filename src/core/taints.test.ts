import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { labelValue, qualifiedName } from './names.ts';
import { parseTaint, taintErrors } from './taints.ts';

test('label keys and values', () => {
  for (const good of ['a', 'a/b', 'example.com/My_Name.x', 'A-b', '0', `${'a'.repeat(63)}`, `${'a.'.repeat(126)}a/b`])
    assert.deepEqual(qualifiedName(good), [], good);
  for (const bad of [
    '',
    '/',
    'a/',
    '/a',
    'a/b/c',
    '-a',
    'a-',
    'Exa/b',
    'a_b/c',
    'a'.repeat(64),
    `${'a'.repeat(254)}/b`,
    'ä',
    'a b',
  ])
    assert.notDeepEqual(qualifiedName(bad), [], bad);
  for (const good of ['', 'a', 'A.b_c-d', '1']) assert.deepEqual(labelValue(good), [], good);
  for (const bad of ['-', 'a-', 'a b', 'a'.repeat(64), 'a/b']) assert.notDeepEqual(labelValue(bad), [], bad);
});

test('taints', () => {
  assert.deepEqual(parseTaint('a=b:NoSchedule'), { key: 'a', value: 'b', effect: 'NoSchedule' });
  assert.deepEqual(parseTaint('x.y/a:NoExecute'), { key: 'x.y/a', effect: 'NoExecute' });
  assert.deepEqual(parseTaint('a=:PreferNoSchedule'), { key: 'a', value: '', effect: 'PreferNoSchedule' });
  for (const bad of ['', 'a', ':NoSchedule', 'a:Never', 'a=b:c:NoSchedule', 'a=b=c:NoSchedule', 'a:'])
    assert.equal(typeof parseTaint(bad), 'string', bad);
  assert.deepEqual(taintErrors({ key: 'a', effect: 'NoSchedule' }), []);
  assert.equal(taintErrors({ key: '', value: '-', effect: '' }).length, 4);
});

test('a taint that is read is valid, and arbitrary text never throws', () => {
  const piece = fc.constantFrom('a', 'b/', '=', ':', 'NoSchedule', 'NoExecute', '-', '.', 'é');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
      const taint = parseTaint(pieces.join(''));
      return typeof taint === 'string' || taintErrors(taint).length === 0;
    }),
    { numRuns: 2000 },
  );
});
