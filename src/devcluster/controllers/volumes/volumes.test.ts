// The volume controllers on a whole server with our own driver behind them, and a node that only says what it uses.
import { strict as assert } from 'node:assert';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { until } from '../../../../test/harness/until.ts';
import { systemClock } from '../../../lib/clock.ts';
import { silentLogger } from '../../../lib/logger.ts';
import { ApiError } from '../../api/api-error.ts';
import { deleteObject } from '../../api/deletion.ts';
import { at, recordAt, recordsAt, textAt, textsAt, type ApiObject, type Json } from '../../api/objects.ts';
import type { Registry } from '../../api/registry.ts';
import { resourceNamed } from '../../api/resources.ts';
import { tableRow } from '../../api/table.ts';
import { DRIVER_NAME } from '../../csi-hostpath/driver-name.ts';
import { HostpathDriver } from '../../csi-hostpath/driver.ts';
import { FaultFile } from '../../csi-hostpath/faults.ts';
import { systemContext } from '../../seed.ts';
import { startApiServer, type RunningApiServer } from '../../start-api-server.ts';
import { attachmentName } from './attaching.ts';

const dir = mkdtempSync(join(tmpdir(), 'kts-volumes-'));
const data = join(dir, 'volumes');
const faults = join(dir, 'faults.json');
const stop = new AbortController();
let server: RunningApiServer;
let registry: Registry;
let driver: Promise<void>;

const get = (storage: string, key: string): ApiObject | undefined =>
  registry.store.get(storage, key)?.object as ApiObject | undefined;
const namespaceOf = (storage: string): string => (resourceNamed(storage).namespaced ? 'default' : '');
const create = (storage: string, body: Json): ApiObject =>
  registry.create(resourceNamed(storage), namespaceOf(storage), body, systemContext()).object as ApiObject;
const change = (storage: string, name: string, body: (draft: ApiObject) => ApiObject, subresource = ''): void =>
  void registry.modify(resourceNamed(storage), namespaceOf(storage), name, body, systemContext(), subresource);
const remove = (storage: string, name: string): void =>
  void deleteObject(
    registry,
    resourceNamed(storage),
    namespaceOf(storage),
    name,
    { gracePeriodSeconds: 0 },
    systemContext(),
  );

const CLAIMS = 'persistentvolumeclaims';
const VOLUMES = 'persistentvolumes';
const CLASSES = 'storage.k8s.io/storageclasses';
const ATTACHMENTS = 'storage.k8s.io/volumeattachments';
const claim = (name: string, storage: string, more: Json = {}): ApiObject =>
  create(CLAIMS, {
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...more },
  });
const pod = (name: string, volume: Json, more: Json = {}): ApiObject =>
  create('pods', {
    metadata: { name },
    spec: { volumes: [{ name: 'v', ...volume }], containers: [{ name: 'c', image: 'i' }], ...more },
  });
const using = (claimName: string): Json => ({ persistentVolumeClaim: { claimName } });
const phaseOf = (storage: string, key: string): string => textAt(get(storage, key), 'status', 'phase');
const bound = async (name: string): Promise<string> => {
  await until(`${name} is bound`, () => phaseOf(CLAIMS, `default/${name}`) === 'Bound');
  return textAt(get(CLAIMS, `default/${name}`), 'spec', 'volumeName');
};
const grow = (name: string, storage: string): void =>
  change(CLAIMS, name, (d) => ({ ...d, spec: { ...recordAt(d, 'spec'), resources: { requests: { storage } } } }));
const inUse = (...names: string[]): void => inUseOn('n1', ...names);
const inUseOn = (node: string, ...names: string[]): void =>
  change('nodes', node, (d) => ({ ...d, status: { ...recordAt(d, 'status'), volumesInUse: names } }), 'status');
const attached = (): string[] =>
  recordsAt(get('nodes', 'n1'), 'status', 'volumesAttached').map((v) => textAt(v, 'name'));
const events = (reason: string): string[] =>
  registry.store
    .list('events')
    .filter((e) => e.object['reason'] === reason)
    .map((e) => textAt(e.object, 'message'));
const refused = (work: () => unknown, text: RegExp): void =>
  assert.throws(work, (err: unknown) => err instanceof ApiError && text.test(err.message));

describe('volume controllers', () => {
  before(async () => {
    const endpoint = join(dir, 'csi.sock');
    const parts = { clock: systemClock, log: silentLogger, faults: new FaultFile(faults) };
    driver = new HostpathDriver(parts, { nodeId: 'node-1', directory: data, endpoint, backing: 'directory' }).run(
      stop.signal,
    );
    server = await startApiServer({ dir: join(dir, 'api'), csiDrivers: [{ name: DRIVER_NAME, endpoint }] });
    registry = server.server.registry;
    create('nodes', { metadata: { name: 'n1', labels: { zone: 'a' } } });
    const ready = { type: 'Ready', status: 'True' };
    change('nodes', 'n1', (d) => ({ ...d, status: { conditions: [ready], allocatable: { pods: '50' } } }), 'status');
    create('storage.k8s.io/csinodes', {
      metadata: { name: 'n1' },
      spec: { drivers: [{ name: DRIVER_NAME, nodeID: 'node-1', topologyKeys: null }] },
    });
  });
  after(async () => {
    await server.stop();
    stop.abort();
    await driver;
    rmSync(dir, { recursive: true, force: true });
  });

  it('gives a claim the default class and a volume, and removes the volume with the claim', async () => {
    const made = claim('plain', '8Mi');
    assert.equal(textAt(made, 'spec', 'storageClassName'), 'standard');
    const name = await bound('plain');
    assert.equal(name, `pvc-${made.metadata.uid ?? ''}`);
    const volume = get(VOLUMES, name);
    assert.equal(at(volume, 'spec', 'capacity', 'storage'), '8Mi');
    assert.equal(textAt(volume, 'spec', 'csi', 'fsType'), 'ext4');
    await until('the volume says so', () => phaseOf(VOLUMES, name) === 'Bound');
    assert.deepEqual(textsAt(get(CLAIMS, 'default/plain'), 'status', 'accessModes'), ['ReadWriteOnce']);
    assert.ok(existsSync(join(data, textAt(volume, 'spec', 'csi', 'volumeHandle'))));
    for (const reason of ['ExternalProvisioning', 'Provisioning', 'ProvisioningSucceeded'])
      assert.equal(events(reason).length, 1, reason);
    remove(CLAIMS, 'plain');
    await until('both are gone', () => get(CLAIMS, 'default/plain') === undefined && get(VOLUMES, name) === undefined);
    assert.deepEqual(readdirSync(data), []);
  });

  it('keeps a claim while a pod has it, a volume while a claim has it, and a retained volume for good', async () => {
    create(CLASSES, { metadata: { name: 'keep' }, provisioner: DRIVER_NAME, reclaimPolicy: 'Retain' });
    claim('held', '8Mi', { storageClassName: 'keep' });
    const name = await bound('held');
    pod('holder', using('held'));
    await until('the pod has a node', () => textAt(get('pods', 'default/holder'), 'spec', 'nodeName') === 'n1');
    remove(VOLUMES, name);
    remove(CLAIMS, 'held');
    assert.equal(get(CLAIMS, 'default/held')?.metadata.deletionTimestamp !== undefined, true);
    assert.equal(
      tableRow(resourceNamed(CLAIMS), get(CLAIMS, 'default/held')!, 'None', 0)['cells']?.toString().split(',')[1],
      'Terminating',
    );
    remove('pods', 'holder');
    await until('the claim is gone', () => get(CLAIMS, 'default/held') === undefined);
    await until('the object of the volume too', () => get(VOLUMES, name) === undefined);
    assert.equal(readdirSync(data).length, 1, 'its data stay');
    for (const left of readdirSync(data)) rmSync(join(data, left), { recursive: true });
  });

  it('waits for the first pod where the class says so', async () => {
    create(CLASSES, {
      metadata: { name: 'later' },
      provisioner: DRIVER_NAME,
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    claim('late', '8Mi', { storageClassName: 'later' });
    await until('it says why', () => events('WaitForFirstConsumer').length > 0);
    assert.equal(phaseOf(CLAIMS, 'default/late'), 'Pending');
    pod('first', using('late'));
    await bound('late');
    await until('the pod has a node', () => textAt(get('pods', 'default/first'), 'spec', 'nodeName') === 'n1');
    assert.equal(get(CLAIMS, 'default/late')?.metadata.annotations?.['volume.kubernetes.io/selected-node'], 'n1');
    remove('pods', 'first');
    remove(CLAIMS, 'late');
    await until('gone', () => get(CLAIMS, 'default/late') === undefined);
  });

  it('attaches for a pod, and detaches when the node no longer uses the volume', async () => {
    claim('disk', '8Mi');
    const volume = get(VOLUMES, await bound('disk'));
    const handle = textAt(volume, 'spec', 'csi', 'volumeHandle');
    const unique = `kubernetes.io/csi/${DRIVER_NAME}^${handle}`;
    const name = attachmentName(handle, DRIVER_NAME, 'n1');
    writeFileSync(
      faults,
      JSON.stringify({ faults: [{ call: 'ControllerPublishVolume', do: 'error', code: 'Internal', times: 1 }] }),
    );
    pod('worker', using('disk'));
    await until('the failure is told', () => events('FailedAttachVolume').length === 1);
    await until('the node is told', () => attached().includes(unique));
    assert.equal(at(get(ATTACHMENTS, name), 'status', 'attached'), true);
    await until('the pod is told', () =>
      events('SuccessfulAttachVolume').includes(
        `AttachVolume.Attach succeeded for volume "${volume?.metadata.name ?? ''}" `,
      ),
    );
    inUse(unique);
    remove('pods', 'worker');
    remove(CLAIMS, 'disk');
    await until('the claim is gone', () => get(CLAIMS, 'default/disk') === undefined);
    assert.ok(attached().includes(unique), 'still in use by the node');
    assert.notEqual(get(VOLUMES, volume?.metadata.name ?? ''), undefined, 'not removed while it is attached');
    inUse();
    await until('detached and removed', () => attached().length === 0 && get(ATTACHMENTS, name) === undefined);
    await until('the volume is gone', () => get(VOLUMES, volume?.metadata.name ?? '') === undefined);
  });

  it('detaches what was attached to a node that is gone', async () => {
    create('nodes', { metadata: { name: 'n2' } });
    claim('stray', '8Mi');
    const name = await bound('stray');
    const spec = { attacher: DRIVER_NAME, nodeName: 'n2', source: { persistentVolumeName: name } };
    create(ATTACHMENTS, { metadata: { name: 'stray' }, spec });
    inUseOn('n2', `kubernetes.io/csi/${DRIVER_NAME}^${textAt(get(VOLUMES, name), 'spec', 'csi', 'volumeHandle')}`);
    remove('nodes', 'n2');
    await until('detached', () => get(ATTACHMENTS, 'stray') === undefined);
    remove(CLAIMS, 'stray');
    await until('gone', () => get(VOLUMES, name) === undefined);
  });

  it('grows a volume and leaves the file system to the node', async () => {
    claim('grow', '8Mi');
    const name = await bound('grow');
    refused(() => grow('grow', '4Mi'), /can not be less than status.capacity/);
    grow('grow', '16Mi');
    const status = (): Json => recordAt(get(CLAIMS, 'default/grow'), 'status');
    await until(
      'it waits for the node',
      () => textAt(status(), 'allocatedResourceStatuses', 'storage') === 'NodeResizePending',
    );
    assert.deepEqual(
      [at(status(), 'capacity', 'storage'), at(status(), 'allocatedResources', 'storage')],
      ['8Mi', '16Mi'],
    );
    assert.deepEqual(
      recordsAt(status(), 'conditions').map((c) => [c['type'], c['status'], c['message'] ?? '']),
      [
        ['Resizing', 'True', ''],
        [
          'FileSystemResizePending',
          'True',
          'Waiting for user to (re-)start a pod to finish file system resize of volume on node.',
        ],
      ],
    );
    assert.equal(at(get(VOLUMES, name), 'spec', 'capacity', 'storage'), '16Mi');
    grow('grow', '4Ti');
    await until(
      'too much is refused',
      () => textAt(status(), 'allocatedResourceStatuses', 'storage') === 'ControllerResizeInfeasible',
    );
    assert.match(events('VolumeResizeFailed')[0] ?? '', /code = OutOfRange/);
    grow('grow', '20Mi');
    await until('less is tried again', () => at(get(VOLUMES, name), 'spec', 'capacity', 'storage') === '20Mi');
    remove(CLAIMS, 'grow');
    await until('gone', () => get(VOLUMES, name) === undefined);
  });

  it('makes the claims of generic ephemeral volumes and removes them with the pod', async () => {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '8Mi' } } };
    pod('scratch', { ephemeral: { volumeClaimTemplate: { metadata: { labels: { a: 'b' } }, spec } } });
    const name = await bound('scratch-v');
    const made = get(CLAIMS, 'default/scratch-v');
    assert.deepEqual(made?.metadata.labels, { a: 'b' });
    assert.deepEqual(
      made.metadata.ownerReferences?.map((o) => [o.kind, o.name, o.controller]),
      [['Pod', 'scratch', true]],
    );
    remove('pods', 'scratch');
    await until('gone', () => get(CLAIMS, 'default/scratch-v') === undefined && get(VOLUMES, name) === undefined);
  });

  it('binds a claim to the volume it names, and tells why another one cannot have it', async () => {
    const local = (name: string): Json => ({
      metadata: { name },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: '',
        hostPath: { path: '/tmp' },
      },
    });
    create(VOLUMES, local('mine'));
    claim('owner', '1Gi', { storageClassName: '', volumeName: 'mine' });
    assert.equal(await bound('owner'), 'mine');
    claim('other', '1Gi', { storageClassName: '', volumeName: 'mine' });
    await until('told', () => events('FailedBinding').includes('volume "mine" already bound to a different claim.'));
    remove(CLAIMS, 'owner');
    await until('released', () => phaseOf(VOLUMES, 'mine') === 'Released');
    remove(CLAIMS, 'other');
    remove(VOLUMES, 'mine');
    await until('gone', () => get(VOLUMES, 'mine') === undefined);
  });

  it('says what a claim waits for, and tries again when the driver failed', async () => {
    claim('nowhere', '8Mi', { storageClassName: 'missing' });
    await until('told', () => events('ProvisioningFailed').includes('storageclass.storage.k8s.io "missing" not found'));
    writeFileSync(
      faults,
      JSON.stringify({ faults: [{ call: 'CreateVolume', do: 'error', code: 'Unavailable', message: 'no', times: 1 }] }),
    );
    claim('again', '8Mi');
    const name = await bound('again');
    const text = 'failed to provision volume with StorageClass "standard": rpc error: code = Unavailable desc = no';
    assert.ok(events('ProvisioningFailed').includes(text));
    for (const done of ['nowhere', 'again']) remove(CLAIMS, done);
    await until('gone', () => get(VOLUMES, name) === undefined);
  });

  it('refuses what cannot be: growth without a class that allows it, changed specs, claims without a size', async () => {
    create(VOLUMES, {
      metadata: { name: 'fixed' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        storageClassName: '',
        hostPath: { path: '/tmp' },
      },
    });
    claim('fixed', '1Gi', { storageClassName: '' });
    await bound('fixed');
    refused(() => grow('fixed', '2Gi'), /only dynamically provisioned pvc can be resized/);
    refused(
      () =>
        change(CLAIMS, 'fixed', (d) => ({ ...d, spec: { ...recordAt(d, 'spec'), accessModes: ['ReadWriteMany'] } })),
      /spec is immutable after creation/,
    );
    refused(
      () => create(CLAIMS, { metadata: { name: 'x' }, spec: { accessModes: ['ReadWriteOnce'] } }),
      /spec.resources\[storage\]: Required/,
    );
    refused(
      () =>
        create(VOLUMES, {
          metadata: { name: 'x' },
          spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } },
        }),
      /must specify a volume type/,
    );
    remove(CLAIMS, 'fixed');
    remove(VOLUMES, 'fixed');
    await until('gone', () => get(VOLUMES, 'fixed') === undefined);
  });
});
