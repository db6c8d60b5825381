import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod, PodStatus } from '../core/pod.ts';
import { withCurrentExplanation, withExplanation, WHY_NOT_READY } from './explanation.ts';

const podOf = (generation?: number): Pod => ({
  metadata: { name: 'p', namespace: 'n', uid: 'u', ...(generation === undefined ? {} : { generation }) },
  spec: { containers: [] },
});
const status = (ready: 'True' | 'False', phase: 'Running' | 'Failed' = 'Running'): PodStatus => ({
  phase,
  conditions: [{ type: 'Ready', status: ready }],
});
const WHY = { reason: 'ImagePullFailed', message: 'no such image' };
const types = ({ conditions }: PodStatus): readonly string[] | undefined => conditions?.map((c) => c.type);

describe('the condition that says why a pod is not ready', () => {
  it('names the generation it is about, where the pod has one, and comes first', () => {
    for (const [generation, observed] of [
      [3, 3],
      [undefined, undefined],
    ] as const) {
      const explained = withExplanation(podOf(generation), status('False'), WHY);
      assert.deepEqual(types(explained), [WHY_NOT_READY, 'Ready']);
      assert.equal(explained.conditions?.[0]?.observedGeneration, observed);
      assert.deepEqual(types(withExplanation(podOf(), explained, WHY)), [WHY_NOT_READY, 'Ready'], 'once only');
    }
    assert.deepEqual(types(withExplanation(podOf(), {}, WHY)), [WHY_NOT_READY]);
  });

  const rows: readonly [name: string, status: PodStatus, wanted: boolean, stays: boolean][] = [
    ['not ready', status('False'), true, true],
    ['ready', status('True'), true, false],
    ['ended', status('False', 'Failed'), true, false],
    ['not ready, switched off', status('False'), false, false],
  ];
  for (const [name, now, wanted, stays] of rows)
    it(`of a pod that is ${name}: ${stays ? 'stays' : 'goes'}`, () => {
      const current = withCurrentExplanation(withExplanation(podOf(), now, WHY), wanted);
      assert.deepEqual(types(current), stays ? [WHY_NOT_READY, 'Ready'] : ['Ready']);
      assert.equal(withCurrentExplanation(now, wanted), now, 'nothing to take away');
    });
});
