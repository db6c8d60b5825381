import assert from 'node:assert/strict';
import { test } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { goArch } from '../host/host-facts.ts';
import { standaloneNode } from './standalone-node.ts';

test('a node without an API server has its labels, resources and addresses', () => {
  const deps = {
    resources: { capacityList: () => ({ cpu: '4' }), allocatableList: () => ({ cpu: '3' }) },
    health: { state: () => ({ features: { supplementalGroupsPolicy: true } }) },
  };
  const addresses = [{ type: 'InternalIP', address: '10.0.0.1' }];
  const labels = { zone: 'a', 'kubernetes.io/hostname': 'other' };
  assert.deepEqual(standaloneNode(environmentOf({ flags: { nodeLabels: labels } }), deps, addresses), {
    metadata: {
      name: 'node-1',
      labels: {
        'kubernetes.io/hostname': 'other',
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': goArch(process.arch),
        zone: 'a',
      },
    },
    spec: {},
    status: {
      capacity: { cpu: '4' },
      allocatable: { cpu: '3' },
      addresses,
      features: { supplementalGroupsPolicy: true },
    },
  });
});
