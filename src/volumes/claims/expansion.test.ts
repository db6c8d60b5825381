import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolume, PersistentVolumeClaim } from '../../core/storage.ts';
import { begunPatch, expansionOf, failedPatch, grownPatch, isGivenUp, isHopelessCode } from './expansion.ts';

type Status = NonNullable<PersistentVolumeClaim['status']>;
const claim = (status: Status): PersistentVolumeClaim => ({ metadata: { name: 'c', resourceVersion: '3' }, status });
const sized = (storage: string): PersistentVolume => ({ metadata: { name: 'pv' }, spec: { capacity: { storage } } });
const at = (storage: string, status?: string, allocated?: string): PersistentVolumeClaim =>
  claim({
    capacity: { storage },
    ...(allocated === undefined ? {} : { allocatedResources: { storage: allocated } }),
    ...(status === undefined ? {} : { allocatedResourceStatuses: { storage: status } }),
  });

const MI = 1024 * 1024;
const table: [string, PersistentVolumeClaim, PersistentVolume, [number, boolean] | undefined][] = [
  ['as large as it should be', at('8Mi'), sized('8Mi'), undefined],
  ['larger than asked for', at('16Mi'), sized('8Mi'), undefined],
  ['pending', at('8Mi', 'NodeResizePending', '12Mi'), sized('16Mi'), [12 * MI, true]],
  ['begun before', at('8Mi', 'NodeResizeInProgress', '16Mi'), sized('16Mi'), [16 * MI, true]],
  ['the controller is at it', at('8Mi', 'ControllerResizeInProgress', '16Mi'), sized('16Mi'), undefined],
  ['given up', at('8Mi', 'NodeResizeInfeasible', '16Mi'), sized('16Mi'), undefined],
  ['an older resizer', at('8Mi'), sized('16Mi'), [16 * MI, false]],
  ['grown before, not asked yet', at('8Mi', undefined, '8Mi'), sized('16Mi'), undefined],
  ['no capacity known', claim({}), sized('16Mi'), undefined],
];
for (const [name, of, volume, expected] of table)
  test(`expansion: ${name}`, () => {
    const found = expansionOf(of, volume);
    assert.deepEqual(found === undefined ? undefined : [found.bytes, found.tracked], expected);
  });

const shared = (of: PersistentVolumeClaim, annotations: Record<string, string> = {}): PersistentVolumeClaim => ({
  ...of,
  metadata: { ...of.metadata, annotations },
  spec: { accessModes: ['ReadWriteMany'] },
});
const done = at('16Mi', undefined, '16Mi');
const elsewhere: [string, PersistentVolumeClaim, PersistentVolume, string, number | undefined][] = [
  ['grown by another node', shared(done), sized('16Mi'), '8Mi', 16 * MI],
  ['grown here', shared(done), sized('16Mi'), '16Mi', undefined],
  ['grown by another node, as an older resizer leaves it', shared(at('16Mi')), sized('16Mi'), '8Mi', 16 * MI],
  ['a volume of one node', done, sized('16Mi'), '8Mi', undefined],
  [
    'once is enough for its driver',
    shared(done, { 'volume.kubernetes.io/node-expansion-not-required': 'true' }),
    sized('16Mi'),
    '8Mi',
    undefined,
  ],
];
for (const [name, of, volume, here, expected] of elsewhere)
  test(`expansion: ${name}`, () => {
    const found = expansionOf(of, volume, here);
    assert.deepEqual([found?.bytes, found?.elsewhere], [expected, expected === undefined ? undefined : true]);
  });

test('a claim that has no status yet: nothing to grow, and patches from nothing', () => {
  const bare: PersistentVolumeClaim = { metadata: { name: 'c' } };
  assert.equal(expansionOf(bare, sized('2Gi')), undefined);
  assert.equal(expansionOf(at('1Gi'), { metadata: { name: 'pv' }, spec: {} }), undefined);
  assert.deepEqual(begunPatch(bare), {
    status: { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } },
  });
  assert.deepEqual((grownPatch(bare, '2Gi') as { status: { capacity: unknown } }).status.capacity, { storage: '2Gi' });
});

test('what is tracked without an amount grows to what the volume has', () => {
  const found = expansionOf(at('1Gi', 'NodeResizePending'), sized('2Gi'));
  assert.deepEqual([found?.size, found?.tracked], ['2Gi', true]);
});

test('the claim is told when it begins, once', () => {
  assert.deepEqual(begunPatch(at('8Mi', 'NodeResizePending', '16Mi')), {
    status: { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } },
    metadata: { resourceVersion: '3' },
  });
  assert.equal(begunPatch(at('8Mi', 'NodeResizeInProgress', '16Mi')), undefined);
});

test('the claim is told when it is done; other conditions and resources stay', () => {
  const before = claim({
    capacity: { storage: '8Mi' },
    allocatedResourceStatuses: { storage: 'NodeResizeInProgress', other: 'x' },
    conditions: [
      { type: 'Resizing', status: 'True' },
      { type: 'ModifyingVolume', status: 'True' },
    ],
  });
  assert.deepEqual(grownPatch(before, '16Mi'), {
    status: {
      '$setElementOrder/conditions': [{ type: 'ModifyingVolume' }],
      allocatedResourceStatuses: { storage: null },
      capacity: { storage: '16Mi' },
      conditions: [{ $patch: 'delete', type: 'Resizing' }],
    },
  });
});

test('a failure is a condition; a hopeless one is given up', () => {
  const statuses = (code: string): unknown =>
    (
      failedPatch(at('8Mi', 'NodeResizeInProgress', '16Mi'), 'why', isHopelessCode(code), 'now')['status'] as Record<
        string,
        unknown
      >
    )['allocatedResourceStatuses'];
  assert.equal(statuses('Internal'), undefined);
  for (const code of ['InvalidArgument', 'OutOfRange', 'NotFound'])
    assert.deepEqual(statuses(code), { storage: 'NodeResizeInfeasible' });
  const { status } = failedPatch(at('8Mi'), 'why', false, 'now');
  assert.deepEqual((status as { conditions: unknown }).conditions, [
    { lastTransitionTime: 'now', message: 'failed to expand pvc with why', status: 'True', type: 'NodeResizeError' },
  ]);
});

test('a size that failed is given up once somebody asks for another', () => {
  const of = (requested: string | undefined, failed: boolean): PersistentVolumeClaim => ({
    ...claim(failed ? { conditions: [{ type: 'NodeResizeError', status: 'True' }] } : {}),
    spec: requested === undefined ? {} : { resources: { requests: { storage: requested } } },
  });
  const rows: [string | undefined, boolean, boolean][] = [
    ['12Mi', true, true],
    ['12Mi', false, false],
    ['16Mi', true, false],
    ['16384Ki', true, false],
    [undefined, true, false],
  ];
  for (const [requested, failed, expected] of rows)
    assert.equal(isGivenUp(of(requested, failed), '16Mi'), expected, `${requested} ${failed}`);
});
