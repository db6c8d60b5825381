// The pure decisions of the volume controllers: which volume, what to attach and detach, what growth needs next.
import { strict as assert } from 'node:assert';
import { describe, it } from 'node:test';
import type { Node } from '../../../core/node.ts';
import type { ApiObject, Json } from '../../api/objects.ts';
import { planAttachments, uniqueName } from './attaching.ts';
import { bestVolume, mismatch } from './matching.ts';
import { secretFor, volumeObject } from './provisioning.ts';
import { nextResizeStep } from './resizer.ts';
import { claimsOfPod, exceedsLimits } from './scheduling.ts';

const object = (name: string, spec: Json, more: Json = {}): ApiObject => ({
  kind: 'X',
  apiVersion: 'v1',
  metadata: { name, namespace: 'ns', uid: `uid-${name}` },
  spec,
  ...more,
});
const claim = (spec: Json = {}, status: Json = {}): ApiObject =>
  object(
    'c',
    { accessModes: ['ReadWriteOnce'], storageClassName: 's', resources: { requests: { storage: '2Gi' } }, ...spec },
    { status },
  );
const volume = (name: string, spec: Json = {}): ApiObject =>
  object(name, { accessModes: ['ReadWriteOnce'], storageClassName: 's', capacity: { storage: '2Gi' }, ...spec });
const node = (labels: Record<string, string>): Node => ({ metadata: { name: 'n1', labels } }) as unknown as Node;
const inZone = (zone: string): Json => ({
  nodeAffinity: {
    required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }] },
  },
});

describe('which volume a claim gets', () => {
  for (const [what, spec, why] of [
    ['one that fits', {}, undefined],
    ['a larger one', { capacity: { storage: '10Gi' } }, undefined],
    ['too small', { capacity: { storage: '1Gi' } }, 'requested PV is too small'],
    ['another class', { storageClassName: 't' }, 'storageClassName does not match'],
    ['a block device', { volumeMode: 'Block' }, 'incompatible volumeMode'],
    ['another access', { accessModes: ['ReadOnlyMany'] }, 'incompatible accessMode'],
  ] as const)
    it(what, () => assert.equal(mismatch(volume('v', spec), claim()), why));

  const best = (volumes: ApiObject[], spec: Json = {}, on?: Node): string | undefined =>
    bestVolume(volumes, claim(spec), on)?.metadata.name;
  it('the smallest that fits', () => {
    const sizes = ['8Gi', '3Gi', '4Gi'].map((storage) => volume(storage, { capacity: { storage } }));
    assert.equal(best(sizes), '3Gi');
  });
  it('one that is reserved for it, though a smaller one is free', () => {
    const claimRef = { name: 'c', namespace: 'ns' };
    assert.equal(best([volume('free'), volume('mine', { claimRef, capacity: { storage: '9Gi' } })]), 'mine');
  });
  it('never one of somebody else', () => {
    assert.equal(best([volume('v', { claimRef: { name: 'c', namespace: 'ns', uid: 'older' } })]), undefined);
  });
  it('one its selector names', () => {
    const marked = volume('b');
    marked.metadata.labels = { tier: 'fast' };
    assert.equal(best([volume('a'), marked], { selector: { matchLabels: { tier: 'fast' } } }), 'b');
  });
  it('one that the node of its pod reaches', () => {
    const volumes = [volume('far', inZone('b')), volume('near', inZone('a'))];
    assert.equal(best(volumes, {}, node({ zone: 'a' })), 'near');
  });
});

describe('what a node needs attached', () => {
  const csi = (name: string): ApiObject => volume(name, { csi: { driver: 'd', volumeHandle: `h-${name}` } });
  const attachment = (name: string, attached = true, going = false): ApiObject => {
    const made = object(`a-${name}`, { source: { persistentVolumeName: name } }, { status: { attached } });
    if (going) made.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    return made;
  };
  const plan = (inUse: string[], wanted: string[], attachments: ApiObject[]): [string[], string[], unknown[]] => {
    const all = ['a', 'b', 'c'].map(csi);
    const result = planAttachments({
      node: object('n1', {}, { status: { volumesInUse: inUse.map((n) => uniqueName(csi(n))) } }),
      wanted: new Map(wanted.map((n) => [n, { volume: csi(n), pods: [] }])),
      attachments,
      volumes: new Map(all.map((v) => [v.metadata.name, v])),
    });
    return [
      result.attach.map((w) => w.volume.metadata.name),
      result.detach.map((a) => a.metadata.name),
      result.volumesAttached.map((v) => v['name']),
    ];
  };
  const shown = (name: string): string => `kubernetes.io/csi/d^h-${name}`;

  it('attaches what a pod needs', () => assert.deepEqual(plan([], ['a'], []), [['a'], [], []]));
  it('reports only what is attached', () =>
    assert.deepEqual(plan([], ['a', 'b'], [attachment('a'), attachment('b', false)]), [[], [], [shown('a')]]));
  it('keeps what the node still uses', () =>
    assert.deepEqual(plan(['a'], [], [attachment('a')]), [[], [], [shown('a')]]));
  it('takes away what nobody uses, from the report too', () =>
    assert.deepEqual(plan([], [], [attachment('a')]), [[], ['a-a'], []]));
  it('waits for an attachment that is going before it makes another', () =>
    assert.deepEqual(plan([], ['a'], [attachment('a', true, true)]), [[], [], []]));
});

describe('what growth needs next', () => {
  const grown = (has: string, status: Json = {}): ApiObject => claim({}, { capacity: { storage: has }, ...status });
  const state = (name: string, allocated = '2Gi'): Json => ({
    allocatedResources: { storage: allocated },
    allocatedResourceStatuses: { storage: name },
  });
  for (const [what, of, size, step] of [
    ['nothing', grown('2Gi'), '2Gi', 'none'],
    ['the driver', grown('1Gi'), '1Gi', 'controller'],
    ['the driver, after a failure', grown('1Gi', state('ControllerResizeInProgress')), '1Gi', 'controller'],
    ['nothing, when the driver said never', grown('1Gi', state('ControllerResizeInfeasible')), '1Gi', 'none'],
    ['the driver, for another size', grown('1Gi', state('ControllerResizeInfeasible', '9Gi')), '1Gi', 'controller'],
    ['to tell the node', grown('1Gi', state('ControllerResizeInProgress')), '2Gi', 'node'],
    ['to wait for the node', grown('1Gi', state('NodeResizePending')), '2Gi', 'none'],
  ] as const)
    it(what, () => assert.equal(nextResizeStep(of, volume('v', { capacity: { storage: size } })), step));
});

describe('what claims mean for a pod', () => {
  const pod = object('p', { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] });
  const verdict = (of: ApiObject | undefined, mode = 'Immediate', pods: ApiObject[] = []): unknown => {
    const found = claimsOfPod(pod, {
      claim: () => of,
      volume: () => volume('v'),
      storageClass: () => object('s', {}, { volumeBindingMode: mode }),
      pods: () => pods,
    });
    return 'problem' in found ? found.problem : [found.volumes.length, found.waiting.length];
  };
  it('missing', () => assert.equal(verdict(undefined), 'persistentvolumeclaim "c" not found'));
  it('not bound', () => assert.equal(verdict(claim()), 'pod has unbound immediate PersistentVolumeClaims'));
  it('waiting for this pod', () => assert.deepEqual(verdict(claim(), 'WaitForFirstConsumer'), [0, 1]));
  it('bound', () => assert.deepEqual(verdict(claim({}, { phase: 'Bound' })), [1, 0]));
  it('for one pod alone, and another one has it', () => {
    const other = object('q', { nodeName: 'n1', volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] });
    const alone = claim({ accessModes: ['ReadWriteOncePod'] }, { phase: 'Bound' });
    assert.match(String(verdict(alone, 'Immediate', [other])), /ReadWriteOncePod access mode/);
  });
});

describe('the limit of a driver', () => {
  const csi = (handle: string): ApiObject => volume(handle, { csi: { driver: 'd', volumeHandle: handle } });
  const csiNode = object('n1', { drivers: [{ name: 'd', nodeID: 'n1', allocatable: { count: 2 } }] });
  for (const [what, wanted, present, exceeded] of [
    ['room for one more', ['a'], ['b'], false],
    ['no room', ['a'], ['b', 'c'], true],
    ['one that is there already', ['b'], ['b', 'c'], false],
    ['none wanted', [], ['b', 'c', 'd'], false],
  ] as const)
    it(what, () => assert.equal(exceedsLimits(wanted.map(csi), present.map(csi), csiNode), exceeded));
  it('a driver the node does not have', () => assert.equal(exceedsLimits([csi('a')], [], undefined), false));
});

describe('what a class makes of a volume', () => {
  const storageClass = object(
    's',
    {},
    {
      reclaimPolicy: 'Delete',
      mountOptions: ['noatime'],
      parameters: {
        'csi.storage.k8s.io/fstype': 'ext4',
        'csi.storage.k8s.io/node-stage-secret-name': '${pvc.name}-key',
        'csi.storage.k8s.io/node-stage-secret-namespace': '${pvc.namespace}',
        speed: 'fast',
      },
    },
  );
  const made = { capacityBytes: 2 ** 31, volumeId: 'h', volumeContext: { speed: 'fast' }, accessibleTopology: [] };

  it('fills in the names of secrets', () => {
    assert.deepEqual(secretFor(storageClass, 'node-stage', claim()), { name: 'c-key', namespace: 'ns' });
    assert.equal(secretFor(storageClass, 'node-publish', claim()), undefined);
  });
  it('carries file system, options and references over', () => {
    const { spec } = volumeObject('d', storageClass, claim(), made) as { spec: Json };
    assert.deepEqual([spec['capacity'], spec['mountOptions']], [{ storage: '2Gi' }, ['noatime']]);
    const csi = spec['csi'] as Json;
    assert.deepEqual([csi['fsType'], csi['nodeStageSecretRef']], ['ext4', { name: 'c-key', namespace: 'ns' }]);
  });
  it('gives a block volume neither', () => {
    const { spec } = volumeObject('d', storageClass, claim({ volumeMode: 'Block' }), made) as { spec: Json };
    assert.deepEqual([spec['mountOptions'], (spec['csi'] as Json)['fsType']], [undefined, undefined]);
  });
});
