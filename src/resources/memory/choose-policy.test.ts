import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { quantity } from '../../core/quantity.ts';
import { chooseMemoryPolicy } from './choose-policy.ts';

describe('the memory manager policy', () => {
  const config = { reservations: [], reservedOfNode: new Map([['memory', quantity('1Gi')]]), podLevelManagers: false };
  for (const [policy, message] of [
    ['BestEffort', /policy "BestEffort" is not available for platform "linux"/],
    ['static', /unknown policy: "static"/],
    ['', /unknown policy: ""/],
  ] as const)
    it(`"${policy}" is refused`, () => assert.throws(() => chooseMemoryPolicy([], { ...config, policy }), message));

  it('None has no policy', () => assert.equal(chooseMemoryPolicy([], { ...config, policy: 'None' }), undefined));
});
