// Checkpoints with nothing in them or the wrong things, and questions about resources nobody serves.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { parseCheckpoint } from './checkpoint.ts';
import { Inventory } from './inventory.ts';
import { containerRequests, podRequests } from './requests.ts';
import { deviceHints } from './topology-hints.ts';

const file = (Data: unknown, Checksum = 0): string => JSON.stringify({ Data, Checksum });
const entry = (more: object = {}): object => ({
  PodUID: 'u',
  ContainerName: 'c',
  ResourceName: 'v/r',
  DeviceIDs: { 0: ['a'] },
  AllocResp: '',
  ...more,
});

describe('a checkpoint', () => {
  it('may have null wherever Go writes it', () => {
    assert.deepEqual(parseCheckpoint(file({})), { grants: [], registered: new Map(), damaged: [] });
    const { grants, registered } = parseCheckpoint(
      file({
        PodDeviceEntries: [entry({ DeviceIDs: null, AllocResp: null }), entry({ DeviceIDs: { '-1': ['a'], 1: null } })],
        RegisteredDevices: { 'v/r': null },
      }),
    );
    assert.deepEqual(
      grants.map(({ grant }) => [...grant.devices]),
      [[], [['a', []]]],
    );
    assert.deepEqual(registered, new Map([['v/r', []]]));
  });

  for (const [name, data, problem] of [
    ['no data', undefined, /no data/],
    [
      'registered devices that are no lists',
      { RegisteredDevices: { r: 1 } },
      /RegisteredDevices is not a map of lists/,
    ],
    ['registered devices that are a list', { RegisteredDevices: [] }, /RegisteredDevices is not a map of lists/],
    ['entries that are no list', { PodDeviceEntries: {} }, /PodDeviceEntries is not a list/],
    ['an entry that is no object', { PodDeviceEntries: [1] }, /an entry is not an object/],
    ['an entry without a pod', { PodDeviceEntries: [entry({ PodUID: 1 })] }, /PodUID is not a text/],
    ['devices that are no lists', { PodDeviceEntries: [entry({ DeviceIDs: [] })] }, /DeviceIDs is not a map of lists/],
    ['ids that are no texts', { PodDeviceEntries: [entry({ DeviceIDs: { 0: [1] } })] }, /DeviceIDs is not a map/],
    ['an answer that is no text', { PodDeviceEntries: [entry({ AllocResp: 1 })] }, /AllocResp is not a text/],
  ] as const)
    it(`with ${name} is refused`, () => assert.throws(() => parseCheckpoint(file(data)), problem));

  it('whose sum is wrong is refused, also one with nothing in it', () => {
    const nothing = { PodDeviceEntries: null, RegisteredDevices: null };
    assert.throws(() => parseCheckpoint(file(nothing, 1)), /checkpoint is corrupted/);
    const nulls = { PodDeviceEntries: [entry({ DeviceIDs: null, AllocResp: null })], RegisteredDevices: { r: null } };
    assert.throws(() => parseCheckpoint(file(nulls, 1)), /checkpoint is corrupted/);
  });

  it('loses only the entry whose answer cannot be read', () => {
    const { grants, damaged } = parseCheckpoint(file({ PodDeviceEntries: [entry({ AllocResp: '/w==' }), entry()] }));
    assert.equal(grants.length, 1);
    assert.match(damaged[0] ?? '', /^u\/c\/v\/r: /);
  });
});

describe('a resource nobody serves', () => {
  it('has no devices, and cannot stop', () => {
    const inventory = new Inventory();
    inventory.stopped('v/r', 0);
    assert.deepEqual(
      [inventory.listed('v/r').size, inventory.healthy('v/r').size, inventory.has('v/r')],
      [0, 0, false],
    );
  });
});

describe('requests', () => {
  const isPlugin = (name: string): boolean => name === 'v/r';
  it('a pod without limits or init containers asks for nothing', () => {
    const pod: Pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'a' }] } };
    assert.equal(podRequests(pod, isPlugin).size, 0);
  });

  it('what a claim serves is not asked of a plugin', () => {
    const container = { name: 'a', resources: { limits: { 'v/r': '2' } } };
    const requestMappings = [{ containerName: 'a', resourceName: 'v/r', requestName: 'r' }];
    const pod: Pod = {
      metadata: { name: 'p' },
      spec: { containers: [container] },
      status: { extendedResourceClaimStatus: { resourceClaimName: 'c', requestMappings } },
    };
    assert.equal(containerRequests(pod, container, isPlugin).size, 0);
    assert.equal(containerRequests({ ...pod, status: {} }, container, isPlugin).get('v/r'), 2);
  });
});

describe('hints', () => {
  it('devices without a node, and ids nobody listed, fit nowhere in particular', () => {
    const devices = new Map([['a', { id: 'a', nodes: [], health: 'Healthy' }]]);
    const input = { requested: 1, devices, free: ['a', 'gone'], reusable: ['old'], numaNodes: [1, 0] };
    assert.deepEqual(deviceHints(input), []);
    assert.deepEqual(deviceHints({ ...input, requested: 0 }), [
      { numaNodes: [0], preferred: true },
      { numaNodes: [1], preferred: true },
      { numaNodes: [0, 1], preferred: false },
    ]);
  });
});
