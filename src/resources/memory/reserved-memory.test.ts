import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { quantity } from '../../core/quantity.ts';
import type { NumaNode } from '../../host/topology/machine-topology.ts';
import { reservedMemory, type MemoryReservation } from './reserved-memory.ts';

const node = (id: number): NumaNode => ({ id, memoryBytes: 0, hugePages: [], distances: [], cores: [] });
const nodes = [node(0), node(1)];
const keep = (numaNode: number, limits: Record<string, string>): MemoryReservation => ({ numaNode, limits });
const reserved = (reservations: readonly MemoryReservation[], whole: Record<string, string>) =>
  Object.fromEntries(
    [...reservedMemory(nodes, reservations, new Map(Object.entries(whole).map(([k, v]) => [k, quantity(v)])))].map(
      ([id, types]) => [id, Object.fromEntries(types)],
    ),
  );

describe('memory kept on each NUMA node', () => {
  for (const [name, reservations, whole, expected] of [
    ['nothing', [], {}, { 0: {}, 1: {} }],
    ['on one node', [keep(0, { memory: '1Ki' })], { memory: '1Ki', cpu: '1' }, { 0: { memory: 1024 }, 1: {} }],
    [
      'on both',
      [keep(0, { memory: '1Ki' }), keep(1, { memory: '2Ki', 'hugepages-2Mi': '0' })],
      { memory: '3Ki' },
      { 0: { memory: 1024 }, 1: { memory: 2048, 'hugepages-2Mi': 0 } },
    ],
  ] as const)
    it(name, () => assert.deepEqual(reserved(reservations, whole), expected));

  for (const [name, reservations, whole, message] of [
    ['too little', [keep(0, { memory: '1Ki' })], { memory: '2Ki' }, /total amount "1Ki" of type "memory".*"2Ki"/],
    ['none where some is needed', [], { memory: '2Ki' }, /total amount "0" of type "memory".*"2Ki"/],
    ['some where none is needed', [keep(0, { 'hugepages-1Gi': '1Gi' })], {}, /"1Gi" of type "hugepages-1Gi".*"0"/],
    ['on a node that is not there', [keep(7, {})], {}, /NUMA node 7 that does not exist on this machine/],
  ] as const)
    it(`${name} is refused`, () => assert.throws(() => reserved(reservations, whole), message));
});
