import assert from 'node:assert/strict';
import { test } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { evictionOptions } from './create.ts';

const evictionHard = { 'memory.available': '100Mi' };

test('pods are held to what they may use in all where that is enforced', () => {
  for (const [enforceNodeAllocatable, experimentalAllocatableIgnoreEviction, signals] of [
    [['pods'], false, ['memory.available', 'allocatableMemory.available']],
    [['pods'], true, ['memory.available']],
    [[], false, ['memory.available']],
  ] as const) {
    const flags = { experimentalAllocatableIgnoreEviction };
    const { thresholds } = evictionOptions(environmentOf({ config: { evictionHard, enforceNodeAllocatable }, flags }));
    assert.deepEqual(
      thresholds.map((t) => t.signal),
      signals,
    );
  }
});
