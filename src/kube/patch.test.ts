import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NODE_MERGE_KEYS, POD_MERGE_KEYS, strategicMergeDiff } from './patch.ts';

const T1 = '2026-11-15T03:16:20Z';
const T2 = '2026-11-15T03:16:21Z';
const condition = (type: string, status: string, more: object = {}): object => ({
  type,
  status,
  lastProbeTime: null,
  lastTransitionTime: T1,
  observedGeneration: 1,
  ...more,
});
const unready = { reason: 'ContainersNotReady', message: 'containers with unready status: [web]' };
const order = (...types: string[]): object[] => types.map((type) => ({ type }));

type Row = { name: string; before: object; after: object; patch: object; keys?: typeof POD_MERGE_KEYS };
const rows: Row[] = [
  { name: 'equal objects', before: { a: { b: [1] } }, after: { a: { b: [1] } }, patch: {} },
  { name: 'added and changed fields', before: { a: 1 }, after: { a: 2, b: 'x' }, patch: { a: 2, b: 'x' } },
  {
    name: 'a field that is gone is null, deep inside',
    before: { status: { resources: { requests: { cpu: '1', memory: '1Mi' } } } },
    after: { status: { resources: { requests: { memory: '1Mi' } } } },
    patch: { status: { resources: { requests: { cpu: null } } } },
  },
  {
    name: 'a plain list is replaced as a whole',
    before: { status: { containerStatuses: [{ name: 'a', ready: false }, { name: 'b' }] } },
    after: { status: { containerStatuses: [{ name: 'a', ready: true }, { name: 'b' }] } },
    patch: { status: { containerStatuses: [{ name: 'a', ready: true }, { name: 'b' }] } },
  },
  {
    name: 'key order inside a list element does not count',
    before: { l: [{ a: 1, b: 2 }] },
    after: { l: [{ b: 2, a: 1 }] },
    patch: {},
  },
  {
    name: 'null is as good as absent: servers drop or add it',
    before: { status: { startTime: null, conditions: [{ type: 'A' }], l: [{ at: null }] } },
    after: { status: { conditions: [{ type: 'A', lastProbeTime: null }], l: [{}], x: null } },
    patch: {},
  },
  { name: 'undefined and empty lists are absent', before: {}, after: { a: undefined, b: [] }, patch: {} },
  { name: 'a list that became empty is null', before: { b: [1] }, after: { b: [] }, patch: { b: null } },
  {
    name: 'a keyed list that did not exist: the full list, no order',
    before: { status: {} },
    after: { status: { conditions: [condition('Ready', 'True')] } },
    patch: { status: { conditions: [condition('Ready', 'True')] } },
  },
  {
    name: 'a keyed list that is gone: what others have added to it since stays',
    before: { status: { conditions: [condition('PodScheduled', 'True')] } },
    after: { status: {} },
    patch: { status: { conditions: [{ $patch: 'delete', type: 'PodScheduled' }] } },
  },
  {
    name: 'conditions that turn True lose reason and message (recorded body)',
    before: {
      status: {
        conditions: [
          condition('PodReadyToStartContainers', 'True'),
          condition('Ready', 'False', unready),
          condition('ContainersReady', 'False', unready),
        ],
      },
    },
    after: {
      status: {
        conditions: [
          condition('PodReadyToStartContainers', 'True'),
          condition('Ready', 'True', { lastTransitionTime: T2 }),
          condition('ContainersReady', 'True', { lastTransitionTime: T2 }),
        ],
      },
    },
    patch: {
      status: {
        '$setElementOrder/conditions': order('PodReadyToStartContainers', 'Ready', 'ContainersReady'),
        conditions: [
          { lastTransitionTime: T2, message: null, reason: null, status: 'True', type: 'Ready' },
          { lastTransitionTime: T2, message: null, reason: null, status: 'True', type: 'ContainersReady' },
        ],
      },
    },
  },
  {
    name: 'a keyed element that is gone',
    before: { status: { conditions: [condition('PodResizeInProgress', 'True'), condition('Ready', 'True')] } },
    after: { status: { conditions: [condition('Ready', 'True')] } },
    patch: {
      status: {
        '$setElementOrder/conditions': order('Ready'),
        conditions: [{ $patch: 'delete', type: 'PodResizeInProgress' }],
      },
    },
  },
  {
    name: 'a new element in the middle, and only the order elsewhere',
    before: { status: { podIPs: [{ ip: '1.1.1.1' }] } },
    after: { status: { podIPs: [{ ip: 'fd00::1' }, { ip: '1.1.1.1' }] } },
    patch: {
      status: { '$setElementOrder/podIPs': [{ ip: 'fd00::1' }, { ip: '1.1.1.1' }], podIPs: [{ ip: 'fd00::1' }] },
    },
  },
  {
    name: 'only the order changed',
    before: { status: { podIPs: [{ ip: 'a' }, { ip: 'b' }] } },
    after: { status: { podIPs: [{ ip: 'b' }, { ip: 'a' }] } },
    patch: { status: { '$setElementOrder/podIPs': [{ ip: 'b' }, { ip: 'a' }] } },
  },
  {
    name: 'node Ready (recorded body)',
    keys: NODE_MERGE_KEYS,
    before: {
      status: {
        conditions: [
          ...['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({ type, status: 'False' })),
          { type: 'Ready', status: 'False', reason: 'KubeletNotReady', message: 'CSINode is not yet initialized' },
        ],
      },
    },
    after: {
      status: {
        conditions: [
          ...['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({ type, status: 'False' })),
          { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' },
        ],
      },
    },
    patch: {
      status: {
        '$setElementOrder/conditions': order('MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'),
        conditions: [
          { message: 'kubelet is posting ready status', reason: 'KubeletReady', status: 'True', type: 'Ready' },
        ],
      },
    },
  },
];

for (const { name, before, after, patch, keys } of rows) {
  test(`strategic merge: ${name}`, () => {
    assert.deepEqual(strategicMergeDiff(before, after, keys ?? POD_MERGE_KEYS), patch);
  });
}

test('strategic merge: keys come out sorted, as the recordings have them', () => {
  const after = { status: { phase: 'Running', hostIP: 'x', podIP: 'y' } };
  const patch = strategicMergeDiff({ status: { phase: 'Pending' } }, after, {});
  assert.equal(JSON.stringify(patch), '{"status":{"hostIP":"x","phase":"Running","podIP":"y"}}');
});
