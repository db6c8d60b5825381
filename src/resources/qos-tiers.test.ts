import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod, QosClass } from '../core/pod.ts';
import { percentOf, qosTierSettings, type QosTierOptions } from './qos-tiers.ts';

const pod = (qosClass: QosClass, memory: string): Pod => ({
  metadata: { name: 'p', uid: qosClass },
  spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1', memory } } }] },
  status: { qosClass },
});

const PODS = [pod('Guaranteed', '100'), pod('Burstable', '30'), pod('Burstable', '20'), pod('BestEffort', '7')];

const rows: readonly (readonly [string, Partial<QosTierOptions>, ReturnType<typeof qosTierSettings>])[] = [
  ['only weights', {}, { Guaranteed: {}, Burstable: { cpuShares: 2048 }, BestEffort: {} }],
  [
    'memory QoS without reservation lifts what an earlier run set',
    { memoryReservation: 'None' },
    {
      Guaranteed: { unified: { 'memory.min': '0' } },
      Burstable: { cpuShares: 2048, unified: { 'memory.low': '0' } },
      BestEffort: {},
    },
  ],
  [
    'tiered reservation: the tree covers both tiers',
    { memoryReservation: 'TieredReservation' },
    {
      Guaranteed: { unified: { 'memory.min': '150' } },
      Burstable: { cpuShares: 2048, unified: { 'memory.low': '50' } },
      BestEffort: {},
    },
  ],
  [
    'qosReserved: lower tiers leave the requests of higher ones alone',
    { reservedPercent: 50 },
    { Guaranteed: {}, Burstable: { cpuShares: 2048, memoryBytes: 950 }, BestEffort: { memoryBytes: 925 } },
  ],
];

for (const [name, options, expected] of rows)
  test(name, () => {
    const all = { memoryReservation: undefined, reservedPercent: undefined, ...options };
    assert.deepEqual(qosTierSettings(PODS, 1000, all), expected);
  });

test('without known memory nothing is limited', () => {
  const settings = qosTierSettings(PODS, 0, { memoryReservation: undefined, reservedPercent: 50 });
  assert.deepEqual(settings.BestEffort, {});
});

test('shares in per cent', () => {
  assert.equal(percentOf('50%'), 50);
  assert.equal(percentOf(undefined), undefined);
});
