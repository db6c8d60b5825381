import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { containerId, podUid } from '../core/ids.ts';
import { observedContainer } from '../core/snapshot.fixture.ts';
import { emptySnapshot } from '../core/snapshot.ts';
import { startedAtMs } from './create.ts';

describe('when a container started', () => {
  const containers = [
    observedContainer('a', { id: 'a', startedAt: 1_500_000_000n }),
    observedContainer('b', { id: 'b', startedAt: 0n }),
  ];
  const snapshot = { ...emptySnapshot(podUid('u'), 'p', 'ns'), containers };
  for (const [name, seen, id, expected] of [
    ['to the millisecond', snapshot, 'a', 1500],
    ['not yet', snapshot, 'b', undefined],
    ['of another pod', snapshot, 'c', undefined],
    ['of a pod nobody saw', undefined, 'a', undefined],
  ] as const)
    it(name, () => assert.equal(startedAtMs(seen, containerId(id)), expected));
});
