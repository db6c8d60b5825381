import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../core/node.ts';
import { csiNodeWithDriver, csiNodeWithoutDriver, nodeWithDriver, nodeWithoutDriver } from './node-objects.ts';

const KEY = 'csi.volume.kubernetes.io/nodeid';
const on = (more: object = {}) => ({ nodeId: 'n', topology: {}, maxVolumesPerNode: 0, ...more }) as never;
const node = (annotation?: string, labels?: Record<string, string>): Node => ({
  metadata: {
    name: 'n1',
    ...(annotation === undefined ? {} : { annotations: { [KEY]: annotation } }),
    ...(labels === undefined ? {} : { labels }),
  },
});
const idsAfter = (annotation?: string): unknown =>
  nodeWithDriver(node(annotation), 'd', on())?.metadata.annotations?.[KEY];

test('ids: added in order; what cannot be read is written anew', () => {
  for (const annotation of [undefined, 'null', '7', 'nonsense']) assert.equal(idsAfter(annotation), '{"d":"n"}');
  assert.equal(idsAfter('{"z":"1","a":"2"}'), '{"a":"2","d":"n","z":"1"}');
  assert.equal(nodeWithDriver(node('{"d":"n"}'), 'd', on()), undefined);
});

test('labels: added, kept when they are the same, a conflict otherwise', () => {
  const zoned = on({ topology: { zone: 'a' } });
  assert.deepEqual(nodeWithDriver(node('{"d":"n"}'), 'd', zoned), { metadata: { labels: { zone: 'a' } } });
  assert.equal(nodeWithDriver(node('{"d":"n"}', { zone: 'a' }), 'd', zoned), undefined);
  assert.throws(() => nodeWithDriver(node('{"d":"n"}', { zone: 'b' }), 'd', zoned), /topology value collision/);
});

test('a driver that leaves: its id goes, the annotation with the last one', () => {
  assert.equal(nodeWithoutDriver(node(), 'd'), undefined);
  assert.deepEqual(nodeWithoutDriver(node('{"d":"n"}'), 'd'), { metadata: { annotations: { [KEY]: null } } });
  assert.deepEqual(nodeWithoutDriver(node('{"d":"n","e":"m"}'), 'd'), {
    metadata: { annotations: { [KEY]: '{"e":"m"}' } },
  });
});

test('the CSINode: the driver last, unchanged when it says the same', () => {
  const empty = { metadata: { name: 'n1' }, spec: {} } as never;
  const made = csiNodeWithDriver(empty, 'd', on({ maxVolumesPerNode: 5, topology: { z: '1', a: '2' } }));
  assert.deepEqual(made?.spec.drivers, [
    { name: 'd', nodeID: 'n', topologyKeys: ['a', 'z'], allocatable: { count: 5 } },
  ]);
  const plain = csiNodeWithDriver(empty, 'd', on());
  assert.deepEqual(plain?.spec.drivers, [{ name: 'd', nodeID: 'n', topologyKeys: null }]);
  assert.ok(made !== undefined && plain !== undefined);
  assert.equal(csiNodeWithDriver(plain, 'd', on()), undefined);
  for (const other of [{ nodeId: 'm' }, { maxVolumesPerNode: 6 }, { topology: { b: '1' } }])
    assert.notEqual(csiNodeWithDriver(plain, 'd', on(other)), undefined);
  assert.deepEqual(csiNodeWithoutDriver(made, 'd')?.spec.drivers ?? [], []);
  assert.equal(csiNodeWithoutDriver(empty, 'd'), undefined);
});
