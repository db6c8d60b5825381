import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { hostIps, notReadyReasons, pressureOf } from './node-facts.ts';
import { nodeOptions } from './node-options.ts';

describe('why a node is not ready', () => {
  const well = { runtimeErrors: [], networkErrors: [] };
  const ill = { runtimeErrors: ['container runtime is down'], networkErrors: ['no network'] };
  for (const [name, state, csiReady, shuttingDown, expected] of [
    ['it is', well, true, false, []],
    ['runtime and network', ill, true, false, ['container runtime is down', 'no network']],
    ['its CSINode is not there', well, false, false, ['CSINode is not yet initialized']],
    ['it goes down', well, true, true, ['node is shutting down']],
    [
      'all of it',
      ill,
      false,
      true,
      ['container runtime is down', 'no network', 'CSINode is not yet initialized', 'node is shutting down'],
    ],
  ] as const)
    it(name, () => assert.deepEqual(notReadyReasons(state, csiReady, shuttingDown), expected));
});

describe('pressure', () => {
  for (const [shown, expected] of [
    [[], { memory: false, disk: false, pid: false }],
    [['MemoryPressure'], { memory: true, disk: false, pid: false }],
    [['DiskPressure', 'PIDPressure'], { memory: false, disk: true, pid: true }],
  ] as const)
    it(shown.join(' and ') || 'none', () => assert.deepEqual(pressureOf(shown), expected));
});

describe('the IPs by which pods know their node', () => {
  const [internal, external] = ['InternalIP', 'ExternalIP'];
  for (const [name, addresses, expected] of [
    ['none are known', [], []],
    [
      'internal before external',
      [
        ['Hostname', 'n'],
        [external, '192.0.2.1'],
        [internal, '10.0.0.1'],
      ],
      ['10.0.0.1'],
    ],
    ['external where there is nothing else', [[external, '192.0.2.1']], ['192.0.2.1']],
    [
      'one of each family, of several networks',
      [
        [internal, '10.0.0.1'],
        [internal, '10.1.0.1'],
        [internal, 'fd00::1'],
        [internal, 'fd01::1'],
      ],
      ['10.0.0.1', 'fd00::1'],
    ],
    [
      'the other family from outside',
      [
        [internal, '10.0.0.1'],
        [external, '2001:db8::1'],
      ],
      ['10.0.0.1', '2001:db8::1'],
    ],
    [
      'what is no address',
      [
        [internal, 'n.example'],
        [internal, '10.0.0.1'],
      ],
      ['10.0.0.1'],
    ],
  ] as const)
    it(name, () => assert.deepEqual(hostIps(addresses.map(([type, address]) => ({ type, address }))), expected));
});

describe('how a node wants to be registered', () => {
  for (const [name, otherwise, read, expected] of [
    ['no cloud', {}, 'externalCloud', false],
    ['an external cloud', { flags: { cloudProvider: 'external' } }, 'externalCloud', true],
    ['an address of its own', { flags: { nodeIp: '10.0.0.1' } }, 'nodeIps', ['10.0.0.1']],
  ] as const)
    it(name, () => assert.deepEqual(nodeOptions(environmentOf(otherwise))[read], expected));

  const taint = { key: 'k', effect: 'NoSchedule' };
  for (const [value, expected] of [
    ['', taint],
    ['v', { ...taint, value: 'v' }],
  ] as const)
    it(`a taint with the value "${value}"`, () => {
      const config = { registerWithTaints: [{ ...taint, value, timeAdded: undefined }] };
      assert.deepEqual(nodeOptions(environmentOf({ config })).taints, [expected]);
    });
});
