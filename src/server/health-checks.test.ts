import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerHealth, type HealthCheck } from './health-checks.ts';

const check = (name: string, failing?: string): HealthCheck => ({ name, failing: () => failing });
const well = [check('ping'), check('log')];
const sick = [check('ping'), check('syncloop', 'stuck for 3m')];

test('answers by checks and query', () => {
  const rows: readonly [string, readonly HealthCheck[], string, boolean, string][] = [
    ['all well', well, '', true, 'ok'],
    ['all well, in words', well, 'verbose', true, '[+]ping ok\n[+]log ok\nhealthz check passed\n'],
    ['no checks', [], 'verbose', true, 'healthz check passed\n'],
    [
      'one fails: the reason is not told to everybody',
      sick,
      '',
      false,
      '[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n',
    ],
    ['the failing one is excluded', sick, 'exclude=syncloop', true, 'ok'],
    [
      'several are excluded',
      sick,
      'verbose&exclude=ping&exclude=syncloop',
      true,
      '[+]ping excluded: ok\n[+]syncloop excluded: ok\nhealthz check passed\n',
    ],
    [
      'what there is not to exclude is named',
      sick,
      'exclude=x&exclude=ping,syncloop&exclude=x&exclude=ping',
      false,
      '[+]ping excluded: ok\n[-]syncloop failed: reason withheld\nwarn: some health checks cannot be excluded: no matches for "ping,syncloop","x"\nhealthz check failed\n',
    ],
  ];
  for (const [what, checks, query, ok, body] of rows)
    assert.deepEqual(answerHealth(checks, new URLSearchParams(query)), { ok, body }, what);
});

test('every result is observed, but for what was excluded', () => {
  const seen: [string, boolean][] = [];
  answerHealth([...sick, check('log')], new URLSearchParams('exclude=log'), (name, ok) => seen.push([name, ok]));
  assert.deepEqual(seen, [
    ['ping', true],
    ['syncloop', false],
  ]);
});
