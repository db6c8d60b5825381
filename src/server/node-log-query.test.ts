import assert from 'node:assert/strict';
import { test } from 'node:test';
import { journalArguments, problemsOf, readNodeLogQuery, type NodeLogQuery } from './node-log-query.ts';

function read(params: string): NodeLogQuery {
  const result = readNodeLogQuery(new URLSearchParams(params));
  assert.ok(result.ok && result.query !== undefined, params);
  return result.query;
}

test('what is asked for as arguments of journalctl', () => {
  const always = ['--utc', '--no-pager', '--output=short-precise'];
  const rows: readonly [string, readonly string[]][] = [
    ['query=kubelet', ['--unit=kubelet']],
    ['query=kubelet&query=crio', ['--unit=kubelet', '--unit=crio']],
    ['query=a&sinceTime=2026-01-02T03:04:05Z', ['--since=2026-01-02 03:04:05', '--unit=a']],
    ['query=a&untilTime=2026-01-02T03:04:05%2B02:00', ['--until=2026-01-02 01:04:05', '--unit=a']],
    ['query=a&tailLines=7', ['--pager-end', '--lines=7', '--unit=a']],
    ['query=a&pattern=fail.*', ['--unit=a', '--grep=fail.*']],
    ['query=a&boot=-1', ['--unit=a', '--boot', '-1']],
  ];
  for (const [params, expected] of rows) assert.deepEqual(journalArguments(read(params)), [...always, ...expected]);
});

test('patterns of the journal that JavaScript writes otherwise', () => {
  const rows: readonly [string, boolean][] = [
    ['(?i)error', true],
    ['(?P<level>warn|error)', true],
    ['[a-', false],
    ['(', false],
  ];
  for (const [pattern, isOne] of rows)
    assert.equal(problemsOf({ services: ['a'], files: [], pattern }) === undefined, isOne, pattern);
});
