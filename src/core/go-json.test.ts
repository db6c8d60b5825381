import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fnv1a32, formatState, goJson, parseState } from './go-json.ts';

const stateOf = (entries: object): string =>
  formatState(new Map(Object.entries(entries).map(([name, value]) => [name, goJson(value)])));

test('Go escapes what could be taken for markup', () => {
  assert.equal(goJson({ a: '<b>&\u2028' }), '{"a":"\\u003cb\\u003e\\u0026\\u2028"}');
});

test('a state file is read back, and refused when it was changed or is none', () => {
  const text = stateOf({ u: 1 });
  assert.deepEqual(parseState(text), { u: 1 });
  assert.throws(() => parseState(text.replace('1', '2')), /checksum does not match/);
  assert.throws(() => parseState('{"data":{},"checksum":0}'), /checksum does not match/);
  assert.throws(() => parseState(text.slice(0, -3)));
});

test('a state file without entries is empty', () => {
  assert.deepEqual(parseState(stateOf({})), {});
  assert.deepEqual(parseState(goJson({ data: '{}', checksum: fnv1a32('(string){}') })), {});
});
