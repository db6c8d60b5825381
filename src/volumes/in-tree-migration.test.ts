import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PersistentVolume } from '../core/storage.ts';
import { MIGRATED_PLUGINS, migratedPersistentVolume, migratedPodVolume } from './in-tree-migration.ts';

type Row = {
  name: string;
  source: Record<string, unknown>;
  metadata?: Partial<PersistentVolume['metadata']>;
  spec?: Partial<PersistentVolume['spec']>;
  csi: Record<string, unknown>;
};

const rows: Row[] = [
  {
    name: 'EBS by URL',
    source: {
      awsElasticBlockStore: { volumeID: 'aws://eu-west-1a/vol-1', fsType: 'xfs', partition: 2, readOnly: true },
    },
    csi: {
      driver: 'ebs.csi.aws.com',
      volumeHandle: 'vol-1',
      fsType: 'xfs',
      readOnly: true,
      volumeAttributes: { partition: '2' },
    },
  },
  {
    name: 'EBS without a zone',
    source: { awsElasticBlockStore: { volumeID: 'aws:///vol-2' } },
    csi: {
      driver: 'ebs.csi.aws.com',
      volumeHandle: 'vol-2',
      fsType: '',
      readOnly: false,
      volumeAttributes: { partition: '0' },
    },
  },
  {
    name: 'EBS by id',
    source: { awsElasticBlockStore: { volumeID: 'vol-3' } },
    csi: {
      driver: 'ebs.csi.aws.com',
      volumeHandle: 'vol-3',
      fsType: '',
      readOnly: false,
      volumeAttributes: { partition: '0' },
    },
  },
  {
    name: 'GCE without a zone',
    source: { gcePersistentDisk: { pdName: 'd' } },
    csi: {
      driver: 'pd.csi.storage.gke.io',
      volumeHandle: 'projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d',
      fsType: '',
      readOnly: false,
      volumeAttributes: { partition: '' },
    },
  },
  {
    name: 'GCE in a zone',
    source: { gcePersistentDisk: { pdName: 'd', partition: 1 } },
    metadata: { labels: { 'topology.kubernetes.io/zone': 'us-east1-b' } },
    csi: {
      driver: 'pd.csi.storage.gke.io',
      volumeHandle: 'projects/UNSPECIFIED/zones/us-east1-b/disks/d',
      fsType: '',
      readOnly: false,
      volumeAttributes: { partition: '1' },
    },
  },
  {
    name: 'GCE in a region',
    source: { gcePersistentDisk: { pdName: 'd' } },
    metadata: { labels: { 'failure-domain.beta.kubernetes.io/zone': 'us-east1-b__us-east1-c' } },
    csi: {
      driver: 'pd.csi.storage.gke.io',
      volumeHandle: 'projects/UNSPECIFIED/regions/us-east1/disks/d',
      fsType: '',
      readOnly: false,
      volumeAttributes: { partition: '' },
    },
  },
  {
    name: 'Cinder',
    source: { cinder: { volumeID: 'c', fsType: 'ext4' } },
    csi: {
      driver: 'cinder.csi.openstack.org',
      volumeHandle: 'c',
      fsType: 'ext4',
      readOnly: false,
      volumeAttributes: {},
    },
  },
  {
    name: 'Azure disk',
    source: {
      azureDisk: { diskName: 'n', diskURI: '/subscriptions/s/disks/n', cachingMode: 'ReadOnly', fsType: 'xfs' },
    },
    csi: {
      driver: 'disk.csi.azure.com',
      volumeHandle: '/subscriptions/s/disks/n',
      fsType: 'xfs',
      readOnly: false,
      volumeAttributes: { kind: 'Managed', cachingmode: 'ReadOnly', fstype: 'xfs' },
    },
  },
  {
    name: 'Azure file, namespace of the claim',
    source: { azureFile: { secretName: 'azure-storage-account-acc-secret', shareName: 'sh' } },
    metadata: { annotations: { 'kubernetes.io/azure-file-resource-group': 'rg' } },
    spec: { claimRef: { namespace: 'ns' } },
    csi: {
      driver: 'file.csi.azure.com',
      volumeHandle: 'rg#acc#sh#pv#ns',
      readOnly: false,
      volumeAttributes: { sharename: 'sh' },
      nodeStageSecretRef: { name: 'azure-storage-account-acc-secret', namespace: 'ns' },
    },
  },
  {
    name: 'Azure file, namespace of its own',
    source: { azureFile: { secretName: 'other', shareName: 'sh', secretNamespace: 'own' } },
    spec: { claimRef: { namespace: 'ns' } },
    csi: {
      driver: 'file.csi.azure.com',
      volumeHandle: '#other#sh#pv#own',
      readOnly: false,
      volumeAttributes: { sharename: 'sh' },
      nodeStageSecretRef: { name: 'other', namespace: 'own' },
    },
  },
  {
    name: 'vSphere',
    source: { vsphereVolume: { volumePath: '[ds] a/b.vmdk', storagePolicyName: 'gold' } },
    csi: {
      driver: 'csi.vsphere.vmware.com',
      volumeHandle: '[ds] a/b.vmdk',
      fsType: '',
      volumeAttributes: { storagepolicyname: 'gold' },
    },
  },
  {
    name: 'Portworx with a secret',
    source: { portworxVolume: { volumeID: 'px' } },
    metadata: {
      annotations: { 'openstorage.io/auth-secret-name': 's', 'openstorage.io/auth-secret-namespace': 'px-ns' },
    },
    csi: {
      driver: 'pxd.portworx.com',
      volumeHandle: 'px',
      fsType: '',
      volumeAttributes: {},
      nodeStageSecretRef: { name: 's', namespace: 'px-ns' },
      nodePublishSecretRef: { name: 's', namespace: 'px-ns' },
      nodeExpandSecretRef: { name: 's', namespace: 'px-ns' },
    },
  },
];

const pvOf = ({ source, metadata, spec }: Pick<Row, 'source' | 'metadata' | 'spec'>): PersistentVolume => ({
  metadata: { name: 'pv', ...metadata },
  spec: { capacity: { storage: '1Gi' }, ...spec, ...source },
});

describe('a persistent volume becomes the one its driver knows', () => {
  for (const row of rows) {
    it(row.name, () => {
      const migrated = migratedPersistentVolume(pvOf(row));
      assert.deepEqual(migrated?.spec.csi, row.csi);
      assert.equal(migrated?.metadata.name, 'pv');
      assert.deepEqual(migrated?.spec.capacity, { storage: '1Gi' });
      for (const field of Object.keys(row.source)) assert.ok(!(field in (migrated?.spec ?? {})));
    });
  }

  it('others stay what they are', () => {
    assert.equal(migratedPersistentVolume(pvOf({ source: { nfs: { server: 's', path: '/' } } })), undefined);
  });

  it('what makes no sense is refused', () => {
    const bad: [Record<string, unknown>, Record<string, string>, RegExp][] = [
      [
        { awsElasticBlockStore: { volumeID: 'aws://zone/disk-1' } },
        {},
        /Invalid format for AWS volume \(aws:\/\/zone\/disk-1\)/,
      ],
      [{ azureFile: { secretName: 's', shareName: 'x' } }, {}, /could not find a secret namespace/],
      [
        { gcePersistentDisk: { pdName: 'd' } },
        { 'topology.kubernetes.io/zone': 'a-b-c__x' },
        /zone in unexpected format/,
      ],
      [
        { gcePersistentDisk: { pdName: 'd' } },
        { 'topology.kubernetes.io/zone': 'a-b-c__a-d-e' },
        /multiple or no regions/,
      ],
    ];
    for (const [source, labels, error] of bad)
      assert.throws(() => migratedPersistentVolume(pvOf({ source, metadata: { labels } })), error);
  });
});

describe('zones', () => {
  const ebs = { awsElasticBlockStore: { volumeID: 'vol-1' } };
  const key = 'topology.ebs.csi.aws.com/zone';
  const expressions = (volume: PersistentVolume) =>
    migratedPersistentVolume(volume)?.spec.nodeAffinity?.required?.nodeSelectorTerms.map(
      (term) => term.matchExpressions,
    );
  const affinity = (zoneKey: string, regionKey: string): NonNullable<PersistentVolume['spec']['nodeAffinity']> => ({
    required: {
      nodeSelectorTerms: [
        {
          matchExpressions: [
            { key: zoneKey, operator: 'In', values: ['a'] },
            { key: regionKey, operator: 'In', values: ['r'] },
          ],
        },
      ],
    },
  });

  it('of the affinity get the name of the driver', () => {
    const region = { key: 'topology.kubernetes.io/region', operator: 'In', values: ['r'] };
    for (const prefix of ['topology.kubernetes.io', 'failure-domain.beta.kubernetes.io']) {
      const nodeAffinity = affinity(`${prefix}/zone`, `${prefix}/region`);
      assert.deepEqual(expressions(pvOf({ source: ebs, spec: { nodeAffinity } })), [
        [{ key, operator: 'In', values: ['a'] }, region],
      ]);
    }
  });

  it('of the labels count where there is no affinity', () => {
    const volume = pvOf({ source: ebs, metadata: { labels: { 'topology.kubernetes.io/zone': 'a__b' } } });
    assert.deepEqual(expressions(volume), [[{ key, operator: 'In', values: ['a', 'b'] }]]);
    assert.equal(expressions(pvOf({ source: ebs })), undefined);
  });

  it('are left alone for drivers without', () => {
    const nodeAffinity = affinity('topology.kubernetes.io/zone', 'x');
    const migrated = migratedPersistentVolume(
      pvOf({ source: { portworxVolume: { volumeID: 'v' } }, spec: { nodeAffinity } }),
    );
    assert.deepEqual(migrated?.spec.nodeAffinity, nodeAffinity);
  });

  it('and regions get the names of the driver for vSphere', () => {
    const source = { vsphereVolume: { volumePath: 'v' } };
    const expected = [
      [
        { key: 'topology.csi.vmware.com/zone', operator: 'In', values: ['a'] },
        { key: 'topology.csi.vmware.com/region', operator: 'In', values: ['r'] },
      ],
    ];
    for (const prefix of ['topology.kubernetes.io', 'failure-domain.beta.kubernetes.io']) {
      const nodeAffinity = affinity(`${prefix}/zone`, `${prefix}/region`);
      assert.deepEqual(expressions(pvOf({ source, spec: { nodeAffinity } })), expected);
      const labels = { [`${prefix}/zone`]: 'a', [`${prefix}/region`]: 'r' };
      assert.deepEqual(expressions(pvOf({ source, metadata: { labels } })), expected);
    }
    assert.equal(expressions(pvOf({ source })), undefined);
  });
});

it('Azure disks are of the one kind that there is a driver for', () => {
  const kindOf = (kind?: string): unknown =>
    migratedPersistentVolume(
      pvOf({ source: { azureDisk: { diskURI: '/x', ...(kind === undefined ? {} : { kind }) } } }),
    )?.spec.csi?.volumeAttributes?.['kind'];
  for (const kind of [undefined, 'Managed', 'managed']) assert.equal(kindOf(kind), 'Managed');
  assert.throws(
    () => kindOf('Shared'),
    /^KubeletError: failed to translate in-tree pv to CSI: kind\(Shared\) is not supported in csi migration$/,
  );
});

it('GCE disks are attached as before whatever the modes say', () => {
  const modes = (accessModes: string[]) =>
    migratedPersistentVolume(pvOf({ source: { gcePersistentDisk: { pdName: 'd' } }, spec: { accessModes } }))?.spec
      .accessModes;
  assert.deepEqual(modes(['ReadWriteMany']), ['ReadWriteOnce']);
  assert.deepEqual(modes(['ReadOnlyMany', 'ReadWriteOnce']), ['ReadWriteOnce']);
  assert.deepEqual(modes(['ReadOnlyMany']), ['ReadOnlyMany']);
});

describe("a pod's own volume", () => {
  const inline: [Record<string, unknown>, string, string][] = [
    [{ awsElasticBlockStore: { volumeID: 'vol-1' } }, 'ebs.csi.aws.com-vol-1', 'ReadWriteOnce'],
    [{ gcePersistentDisk: { pdName: 'd', readOnly: true } }, 'pd.csi.storage.gke.io-d', 'ReadOnlyMany'],
    [{ azureDisk: { diskName: 'n', diskURI: '/x/n' } }, '~x~n', 'ReadWriteOnce'],
    [{ azureFile: { secretName: 's', shareName: 'sh' } }, '#s#sh#v#ns', 'ReadWriteMany'],
    [{ vsphereVolume: { volumePath: '[ds] a/b' } }, 'csi.vsphere.vmware.com-[ds] a~b', 'ReadWriteOnce'],
  ];
  for (const [source, name, mode] of inline) {
    it(name, () => {
      const migrated = migratedPodVolume({ name: 'v', ...source }, 'ns');
      assert.equal(migrated?.metadata.name, name);
      assert.deepEqual(migrated?.spec.accessModes, [mode]);
      assert.equal(migrated?.spec.volumeMode, 'Filesystem');
    });
  }
  it('of another kind is not translated', () => {
    assert.equal(migratedPodVolume({ name: 'v', emptyDir: {} }, 'ns'), undefined);
  });
});

it('the names are those of the CSINode annotation', () => {
  assert.equal(
    MIGRATED_PLUGINS.join(','),
    'kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume',
  );
});
