import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod, PodSpec } from '../core/pod.ts';
import { checkDeclaredFeatures, updateProblem } from './pod-features.ts';

const pod = (spec: Partial<PodSpec>): Pod => ({ metadata: { name: 'p' }, spec: { containers: [], ...spec } });
const cpu = (amount: string): { requests: { cpu: string } } => ({ requests: { cpu: amount } });

test('updates that need a feature this node does not declare', () => {
  const init = (amount: string): Pod => pod({ initContainers: [{ name: 'i', resources: cpu(amount) }] });
  const sidecar = (amount: string): Pod =>
    pod({ initContainers: [{ name: 's', restartPolicy: 'Always', resources: cpu(amount) }] });
  const both = 'InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers';
  const rows: [Pod, Pod, string, string | undefined][] = [
    [pod({ resources: cpu('1') }), pod({ resources: cpu('2') }), '', 'InPlacePodLevelResourcesVerticalScaling'],
    [pod({}), pod({ resources: cpu('2') }), '', 'InPlacePodLevelResourcesVerticalScaling'],
    [pod({ resources: cpu('1') }), pod({ resources: cpu('2') }), both, undefined],
    [pod({ resources: cpu('1') }), pod({ resources: cpu('1') }), '', undefined],
    [init('1'), init('2'), '', 'InPlacePodVerticalScalingInitContainers'],
    [init('1'), init('2'), both, undefined],
    [sidecar('1'), sidecar('2'), '', undefined],
  ];
  for (const [before, now, declared, missing] of rows)
    assert.equal(
      updateProblem(before, now, declared.split(' ')),
      missing && `Pod requires node features that are not available: ${missing}`,
    );
});

test('a node that declares nothing refuses nothing', () => {
  const restartAll = pod({
    containers: [{ name: 'c', restartPolicyRules: [{ action: 'RestartAllContainers' }] }],
  } as Partial<PodSpec>);
  assert.equal(checkDeclaredFeatures(restartAll, [])?.reason, 'PodFeatureUnsupported');
  assert.equal(checkDeclaredFeatures(restartAll, undefined), undefined);
  assert.equal(updateProblem(pod({}), pod({ resources: cpu('2') }), undefined), undefined);
});
