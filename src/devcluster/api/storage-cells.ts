// The columns of claims, volumes, storage classes, CSI drivers and attachments.
import type { Column } from './age.ts';
import { at, listAt, recordsAt, textAt, textsAt, type ApiObject } from './objects.ts';
import { DEFAULT_CLASS } from './strategies/storage.ts';

type Cell = Pick<Column, 'name' | 'cell'> & Partial<Column>;

const text =
  (...path: string[]): Column['cell'] =>
  (o) =>
    textAt(o, ...path);
const yes =
  (...path: string[]): Column['cell'] =>
  (o) =>
    String(at(o, ...path) === true);
const amount =
  (...path: string[]): Column['cell'] =>
  (o) => {
    const value = at(o, ...path);
    return typeof value === 'number' ? String(value) : typeof value === 'string' ? value : '';
  };

const SHORT: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
};
const accessModes =
  (...path: string[]): Column['cell'] =>
  (o) =>
    textsAt(o, ...path)
      .map((m) => SHORT[m] ?? m)
      .join(',');

const phase = (o: ApiObject): string =>
  o.metadata.deletionTimestamp === undefined ? textAt(o, 'status', 'phase') : 'Terminating';
const UNSET: Cell = {
  name: 'VolumeAttributesClass',
  cell: (o) => textAt(o, 'spec', 'volumeAttributesClassName') || '<unset>',
};
const MODE: Cell = { name: 'VolumeMode', cell: (o) => textAt(o, 'spec', 'volumeMode') || '<unset>', priority: 1 };

/** What a claim got is only known once it has a volume. */
const ofBound =
  (cell: Column['cell']): Column['cell'] =>
  (o, now) =>
    textAt(o, 'spec', 'volumeName') === '' ? '' : cell(o, now);

const tokenRequests = (o: ApiObject): string =>
  recordsAt(o, 'spec', 'tokenRequests')
    .map((t) => textAt(t, 'audience'))
    .join(',') || '<unset>';

export const STORAGE_CELLS: Readonly<Record<string, readonly Cell[]>> = {
  persistentvolumes: [
    { name: 'Capacity', cell: amount('spec', 'capacity', 'storage') },
    { name: 'Access Modes', cell: accessModes('spec', 'accessModes') },
    { name: 'Reclaim Policy', cell: text('spec', 'persistentVolumeReclaimPolicy') },
    { name: 'Status', cell: phase },
    {
      name: 'Claim',
      cell: (o) =>
        [textAt(o, 'spec', 'claimRef', 'namespace'), textAt(o, 'spec', 'claimRef', 'name')].filter(Boolean).join('/'),
    },
    { name: 'StorageClass', cell: text('spec', 'storageClassName') },
    UNSET,
    { name: 'Reason', cell: text('status', 'reason') },
    MODE,
  ],
  persistentvolumeclaims: [
    { name: 'Status', cell: phase },
    { name: 'Volume', cell: text('spec', 'volumeName') },
    { name: 'Capacity', cell: ofBound(amount('status', 'capacity', 'storage')) },
    { name: 'Access Modes', cell: ofBound(accessModes('status', 'accessModes')) },
    { name: 'StorageClass', cell: text('spec', 'storageClassName') },
    UNSET,
    MODE,
  ],
  'storage.k8s.io/storageclasses': [
    {
      name: 'Name',
      cell: (o) => `${o.metadata.name}${o.metadata.annotations?.[DEFAULT_CLASS] === 'true' ? ' (default)' : ''}`,
    },
    { name: 'Provisioner', cell: text('provisioner') },
    { name: 'ReclaimPolicy', cell: text('reclaimPolicy') },
    { name: 'VolumeBindingMode', cell: text('volumeBindingMode') },
    { name: 'AllowVolumeExpansion', cell: yes('allowVolumeExpansion') },
  ],
  'storage.k8s.io/csinodes': [{ name: 'Drivers', cell: (o) => listAt(o, 'spec', 'drivers').length, type: 'integer' }],
  'storage.k8s.io/csidrivers': [
    { name: 'AttachRequired', cell: yes('spec', 'attachRequired') },
    { name: 'PodInfoOnMount', cell: yes('spec', 'podInfoOnMount') },
    { name: 'StorageCapacity', cell: yes('spec', 'storageCapacity') },
    { name: 'TokenRequests', cell: tokenRequests },
    { name: 'RequiresRepublish', cell: yes('spec', 'requiresRepublish') },
    { name: 'Modes', cell: (o) => textsAt(o, 'spec', 'volumeLifecycleModes').join(',') || '<none>' },
  ],
  'storage.k8s.io/csistoragecapacities': [
    { name: 'StorageClassName', cell: text('storageClassName') },
    { name: 'Capacity', cell: amount('capacity') },
  ],
  'storage.k8s.io/volumeattachments': [
    { name: 'Attacher', cell: text('spec', 'attacher') },
    { name: 'PV', cell: text('spec', 'source', 'persistentVolumeName') },
    { name: 'Node', cell: text('spec', 'nodeName') },
    { name: 'Attached', cell: yes('status', 'attached') },
  ],
};
