// Hints against what they mean: a set of nodes that has enough devices, preferred when no smaller set ever could.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Device } from './device.ts';
import { deviceHints } from './topology-hints.ts';

const nodes = fc.uniqueArray(fc.integer({ min: 0, max: 5 }), { maxLength: 3 });
const machine = fc.record({
  /** Of each device, by its number; one may name a node that the machine does not have. */
  places: fc.array(nodes, { minLength: 1, maxLength: 12 }),
  state: fc.array(fc.constantFrom('free', 'reusable', 'taken'), { minLength: 12, maxLength: 12 }),
  numaNodes: fc.uniqueArray(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 4 }),
  requested: fc.integer({ min: 1, max: 6 }),
});

test('a hint for every set of nodes that has enough, preferred when it is as small as any that could have', () => {
  fc.assert(
    fc.property(machine, ({ places, state, numaNodes, requested }) => {
      const devices = new Map<string, Device>(
        places.map((at, i) => [`d${i}`, { id: `d${i}`, health: 'Healthy', nodes: at }]),
      );
      const ids = (which: string): string[] => [...devices.keys()].filter((_, i) => state[i] === which);
      const [free, reusable] = [ids('free'), ids('reusable')];
      const hints = deviceHints({ requested, devices, free, reusable, numaNodes });
      const on = (id: string, mask: readonly number[]): boolean =>
        (devices.get(id)?.nodes ?? []).some((n) => mask.includes(n) && numaNodes.includes(n));
      const placed = reusable.filter((id) => (devices.get(id)?.nodes ?? []).length > 0);
      const all = (mask: readonly number[]): number => [...devices.keys()].filter((id) => on(id, mask)).length;
      const sizes = subsets(numaNodes).filter((mask) => all(mask) >= requested);
      const smallest = Math.min(...sizes.map((mask) => mask.length));
      for (const { numaNodes: mask = [], preferred } of hints) {
        assert.ok(placed.every((id) => on(id, mask)));
        assert.ok(placed.length + free.filter((id) => on(id, mask)).length >= requested);
        if (Number.isFinite(smallest)) assert.equal(preferred, mask.length === smallest);
      }
      const used = numaNodes.filter((n) => [...devices.values()].some((d) => d.nodes.includes(n)));
      const wanted = subsets(used.length > 0 ? used : numaNodes).filter(
        (mask) =>
          placed.every((id) => on(id, mask)) && placed.length + free.filter((id) => on(id, mask)).length >= requested,
      );
      assert.equal(hints.length, wanted.length);
    }),
    { numRuns: 500 },
  );
});

const subsets = (of: readonly number[]): number[][] =>
  of.reduce<number[][]>((sets, n) => [...sets, ...sets.map((set) => [...set, n])], [[]]).slice(1);
