import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { declaredFeatures } from './declared-features.ts';

const rows: readonly [string, readonly string[], readonly string[]][] = [
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
  for (const [name, on, expected] of rows)
    it(name, () => assert.deepEqual(declaredFeatures({ enabled: (gate) => on.includes(gate) }), expected));
});
