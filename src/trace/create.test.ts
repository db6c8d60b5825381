import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportSettings } from './create.ts';

const rows: readonly [string, Parameters<typeof exportSettings>[0]['tracing'], ReturnType<typeof exportSettings>][] = [
  ['no tracing section', undefined, undefined],
  ['an endpoint without a rate', { endpoint: 'here:4317', samplingRatePerMillion: undefined }, undefined],
  ['a rate of zero', { endpoint: 'here:4317', samplingRatePerMillion: 0 }, undefined],
  [
    'a rate alone: the usual place',
    { endpoint: undefined, samplingRatePerMillion: 5 },
    { endpoint: '', samplingRatePerMillion: 5 },
  ],
  ['both', { endpoint: 'a:1', samplingRatePerMillion: 7 }, { endpoint: 'a:1', samplingRatePerMillion: 7 }],
];

for (const [name, tracing, want] of rows)
  test(`trace export: ${name}`, () => assert.deepEqual(exportSettings({ tracing }), want));
