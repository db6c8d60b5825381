// Queries for logs and health as they come from clients, with the corners of each parameter.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLogQuery } from './log-query.ts';

const parse = (text: string, split = true): unknown => {
  const found = parseLogQuery(new URLSearchParams(text), split, 0);
  return 'query' in found ? found.query : found;
};

test('a log query: bytes, lines and a time with any fraction and zone', () => {
  const shown = (text: string): string =>
    JSON.stringify(parse(text), (_, v: unknown) => (typeof v === 'bigint' ? `${v}` : v));
  assert.match(shown('limitBytes=5&tailLines=2'), /"limitBytes":5/);
  assert.match(shown('sinceTime=1970-01-01T00:00:01.5Z'), /1500000000/);
  assert.match(shown('sinceTime=1970-01-01T01:00:01%2B01:00'), /1000000000/);
  assert.doesNotMatch(shown('sinceTime=null'), /sinceNanos/);
  assert.notDeepEqual(parse('sinceTime=1970-13-01T00:00:01Z'), parse(''));
});
