// What `kubectl get pvc,pv,sc,csidriver,csinode,volumeattachment` shows.
import { strict as assert } from 'node:assert';
import { describe, it } from 'node:test';
import type { ApiObject, Json } from './objects.ts';
import { resourceNamed } from './resources.ts';
import { columnsOf, tableRow } from './table.ts';

const object = (name: string, more: Json): ApiObject => ({
  kind: 'X',
  apiVersion: 'v1',
  metadata: { name, namespace: 'ns', creationTimestamp: '2026-01-01T00:00:00Z', ...(more['metadata'] as Json) },
  ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== 'metadata')),
});

/** Columns with their cells, one minute after the object was made. */
const shown = (storage: string, of: ApiObject): Record<string, unknown> => {
  const type = resourceNamed(storage);
  const { cells } = tableRow(type, of, 'None', Date.UTC(2026, 0, 1, 0, 1)) as { cells: unknown[] };
  return Object.fromEntries(columnsOf(type).map((column, i) => [String(column['name']), cells[i]]));
};

const CLAIM = {
  volumeName: 'v',
  storageClassName: 'standard',
  volumeMode: 'Filesystem',
  accessModes: ['ReadWriteOnce'],
};

describe('storage in tables', () => {
  it('a bound claim', () => {
    const status = { phase: 'Bound', capacity: { storage: '8Mi' }, accessModes: ['ReadWriteOnce', 'ReadOnlyMany'] };
    assert.deepEqual(shown('persistentvolumeclaims', object('c', { spec: CLAIM, status })), {
      Name: 'c',
      Status: 'Bound',
      Volume: 'v',
      Capacity: '8Mi',
      'Access Modes': 'RWO,ROX',
      StorageClass: 'standard',
      VolumeAttributesClass: '<unset>',
      Age: '60s',
      VolumeMode: 'Filesystem',
    });
  });
  it('a claim that waits, and one that goes', () => {
    const waiting = object('c', { spec: { ...CLAIM, volumeName: '' }, status: { phase: 'Pending' } });
    const cells = shown('persistentvolumeclaims', waiting);
    assert.deepEqual([cells['Status'], cells['Capacity'], cells['Access Modes']], ['Pending', '', '']);
    const going = object('c', { spec: CLAIM, status: { phase: 'Bound' }, metadata: { deletionTimestamp: 'x' } });
    assert.equal(shown('persistentvolumeclaims', going)['Status'], 'Terminating');
  });
  it('a volume', () => {
    const spec = {
      capacity: { storage: '8Mi' },
      accessModes: ['ReadWriteOncePod'],
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: 'standard',
      claimRef: { namespace: 'ns', name: 'c' },
      volumeMode: 'Block',
    };
    const cells = Object.values(shown('persistentvolumes', object('v', { spec, status: { phase: 'Bound' } })));
    assert.deepEqual(cells, ['v', '8Mi', 'RWOP', 'Delete', 'Bound', 'ns/c', 'standard', '<unset>', '', '60s', 'Block']);
  });
  it('the default class', () => {
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    const of = object('standard', {
      metadata: { annotations },
      provisioner: 'd',
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
      allowVolumeExpansion: true,
    });
    const cells = Object.values(shown('storage.k8s.io/storageclasses', of));
    assert.deepEqual(cells, ['standard (default)', 'd', 'Delete', 'Immediate', 'true', '60s']);
  });
  it('drivers, their nodes and attachments', () => {
    const spec = { attachRequired: true, volumeLifecycleModes: ['Persistent', 'Ephemeral'] };
    const driver = Object.values(shown('storage.k8s.io/csidrivers', object('d', { spec })));
    assert.deepEqual(driver, ['d', 'true', 'false', 'false', '<unset>', 'false', 'Persistent,Ephemeral', '60s']);
    const csiNode = object('n1', { spec: { drivers: [{ name: 'd' }] } });
    assert.deepEqual(Object.values(shown('storage.k8s.io/csinodes', csiNode)), ['n1', 1, '60s']);
    const attachment = object('a', {
      spec: { attacher: 'd', nodeName: 'n1', source: { persistentVolumeName: 'v' } },
      status: { attached: true },
    });
    const cells = Object.values(shown('storage.k8s.io/volumeattachments', attachment));
    assert.deepEqual(cells, ['a', 'd', 'v', 'n1', 'true', '60s']);
  });
});
