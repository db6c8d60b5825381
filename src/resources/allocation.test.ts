import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod, ResourceRequirements } from '../core/pod.ts';
import { allocationOf, differs, withAllocation } from './allocation.ts';

const podOf = (resources?: ResourceRequirements): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: { containers: [{ name: 'c', ...(resources === undefined ? {} : { resources }) }] },
});
const cpu = (value: string): ResourceRequirements => ({ requests: { cpu: value } });

describe('whether a pod asks for other than it was granted', () => {
  const rows: readonly [string, ResourceRequirements | undefined, ResourceRequirements | undefined, boolean][] = [
    ['nothing, of nothing', undefined, undefined, false],
    ['the same', cpu('1'), cpu('1'), false],
    ['the same in other words', cpu('1'), cpu('1000m'), false],
    ['more', cpu('2'), cpu('1'), true],
    ['something, where nothing was granted', cpu('1'), undefined, true],
    ['nothing, where something was granted', undefined, cpu('1'), true],
    ['a limit that was not there', { ...cpu('1'), limits: { memory: '1Mi' } }, cpu('1'), true],
    [
      'more of what nobody resizes',
      { requests: { 'example.com/gpu': '2' } },
      { requests: { 'example.com/gpu': '1' } },
      false,
    ],
  ];
  for (const [what, wanted, granted, expected] of rows)
    it(what, () => assert.equal(differs(podOf(wanted), allocationOf(podOf(granted))), expected));

  it('a pod that was granted nothing yet is as it is', () => {
    assert.equal(differs(podOf(cpu('1')), undefined), false);
    const pod = podOf(cpu('1'));
    assert.equal(withAllocation(pod, undefined), pod);
  });

  it('a container that was not there then says nothing', () => {
    assert.equal(differs(podOf(cpu('1')), { containers: {} }), false);
  });
});

it('what is granted is kept with its claims', () => {
  const resources = { ...cpu('1'), claims: [{ name: 'gpu' }] };
  assert.deepEqual(allocationOf(podOf(resources)), { containers: { c: resources } });
});
