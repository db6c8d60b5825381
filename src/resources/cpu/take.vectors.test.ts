import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCpuSet, tryParseCpuSet } from '../../core/cpuset.ts';
import { messageOf } from '../../lib/errors.ts';
import { machineOf, readVectors, topologiesOf, type TopologyVector } from '../vectors.fixture.ts';
import { cpuTopology } from './cpu-topology.ts';
import { takeDistributed } from './take-distributed.ts';
import { takePacked } from './take-packed.ts';

type TakeVector = {
  readonly kind: 'take';
  readonly id: number;
  readonly fn: 'packed' | 'distributed';
  readonly topology: string;
  readonly available: string;
  readonly n: number;
  readonly order: 'packed' | 'spread';
  readonly uncore?: boolean;
  readonly group?: number;
  readonly result: { readonly cpus: string } | { readonly error: string };
};

for (const file of ['cpu-take', 'cpu-static', 'cpu-hints'])
  test(`${file}: what discovery makes of a machine`, () => {
    const lines = readVectors<TopologyVector>(file).filter((line) => line.kind === 'topology');
    assert.ok(lines.length > 0);
    for (const line of lines) {
      const { places, counts, cpus } = cpuTopology(machineOf(line));
      const flat = [...cpus].map((cpu) => {
        const place = places.get(cpu);
        return [cpu, place?.numa, place?.socket, place?.core, place?.uncore];
      });
      assert.deepEqual(flat, line.cpus, line.name);
      assert.deepEqual(
        { cpus: cpus.size, cores: counts.core, uncore: counts.uncore, sockets: counts.socket, numa: counts.numa },
        line.counts,
        line.name,
      );
    }
  });

test('CPUs are chosen as upstream chooses them', () => {
  const lines = readVectors<TakeVector | TopologyVector>('cpu-take');
  const topologyNamed = topologiesOf(lines);
  const cases = lines.filter((line) => line.kind === 'take');
  assert.ok(cases.length > 0);
  for (const { id, fn, topology, available, n, order, uncore, group, result } of cases) {
    const run = (): TakeVector['result'] => {
      try {
        const free = tryParseCpuSet(available) ?? new Set();
        const machine = topologyNamed(topology);
        const cpus =
          fn === 'packed'
            ? takePacked(machine, free, n, { order, uncore: uncore === true })
            : takeDistributed(machine, free, n, group ?? 1, order);
        return { cpus: formatCpuSet(cpus) };
      } catch (err) {
        return { error: messageOf(err) };
      }
    };
    assert.deepEqual(run(), result, `case ${id}: ${fn} ${n} of ${available} on ${topology}`);
  }
});
