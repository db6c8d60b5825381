import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { declaredFeatures } from './declared-features.ts';

const OWN = 'NodeDeclaredFeatures';
const USERNS = 'UserNamespacesHostNetworkSupport';

const rows: readonly [string, readonly string[], readonly string[], boolean?][] = [
  ['of the runtime, which cannot', [USERNS], []],
  ['of the runtime, which can', [USERNS], [USERNS], true],
  ['of the runtime, which can, but is not asked to', [], [], true],
  ['none is on', [], []],
  ['a gate that nobody declares', ['MemoryQoS'], []],
  [
    'in the order of their names',
    ['RestartAllContainersOnContainerExits', 'ExtendWebSocketsToKubelet', 'MemoryQoS'],
    ['ExtendWebSocketsToKubelet', 'RestartAllContainersOnContainerExits'],
  ],
  [
    'all of them',
    [
      'InPlacePodVerticalScalingInitContainers',
      'InPlacePodLevelResourcesVerticalScaling',
      'ExtendWebSocketsToKubelet',
      'RestartAllContainersOnContainerExits',
    ],
    [
      'ExtendWebSocketsToKubelet',
      'InPlacePodLevelResourcesVerticalScaling',
      'InPlacePodVerticalScalingInitContainers',
      'RestartAllContainersOnContainerExits',
    ],
  ],
];

describe('features that the node declares', () => {
  for (const [name, on, expected, userNamespacesHostNetwork = false] of rows)
    it(name, () =>
      assert.deepEqual(
        declaredFeatures({ enabled: (gate) => gate === OWN || on.includes(gate) }, { userNamespacesHostNetwork }),
        expected,
      ),
    );

  it('none at all without the gate for it', () =>
    assert.equal(
      declaredFeatures({ enabled: (gate) => gate !== OWN }, { userNamespacesHostNetwork: true }),
      undefined,
    ));
});
