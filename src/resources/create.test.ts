import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { formatQuantity, quantity } from '../core/quantity.ts';
import { hasPodLevelManagers } from './create-managers.ts';
import { createNodeResources, memoryReservation } from './create.ts';

const tiered = { memoryReservationPolicy: 'TieredReservation' as const };
const rows: readonly [string, Parameters<typeof environmentOf>[0], 1 | 2, string | undefined][] = [
  ['the gate is off', { config: tiered, gates: { MemoryQoS: false } }, 2, undefined],
  ['cgroup v1 has no such files', { config: tiered, gates: { MemoryQoS: true } }, 1, undefined],
  ['as configured', { config: tiered, gates: { MemoryQoS: true } }, 2, 'TieredReservation'],
];

describe('memory reserved by tiers', () => {
  for (const [name, otherwise, version, expected] of rows)
    it(name, () => assert.equal(memoryReservation(environmentOf(otherwise), version), expected));
});

describe('pod-level managers', () => {
  for (const [managers, resources, expected] of [
    [true, true, true],
    [true, false, false],
    [false, true, false],
  ] as const)
    it(`managers ${managers}, pod-level resources ${resources}`, () => {
      const gates = { PodLevelResourceManagers: managers, PodLevelResources: resources };
      assert.equal(hasPodLevelManagers(environmentOf({ gates })), expected);
    });
});

describe('reservations', () => {
  for (const [name, reservedSystemCPUs, reserved] of [
    ['by amount', '', '500m'],
    ['by list, which wins', '0,2', '2'],
  ] as const)
    it(name, () => {
      const config = { systemReserved: { cpu: '500m' }, reservedSystemCPUs };
      const { systemReserved, kubeReserved } = createNodeResources(environmentOf({ config })).reservations;
      assert.equal(kubeReserved.size, 0);
      assert.equal(formatQuantity(systemReserved.get('cpu') ?? quantity('0')), reserved);
    });
});
