// The controllers on a whole server, with a kubelet that only says yes.
import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { deleteObject } from '../api/deletion.ts';
import { numberAt, recordAt, recordsAt, textAt, type ApiObject, type Json } from '../api/objects.ts';
import type { Registry } from '../api/registry.ts';
import { resourceNamed } from '../api/resources.ts';
import { systemContext } from '../seed.ts';
import { startApiServer, type RunningApiServer } from '../start-api-server.ts';
import { until } from '../../../test/harness/until.ts';

let server: RunningApiServer;
let registry: Registry;
const dir = mkdtempSync(join(tmpdir(), 'kts-controllers-'));
/** What pods of this image come to. */
const FATES: Record<string, string> = { ok: 'Running', done: 'Succeeded', bad: 'Failed' };

const get = (storage: string, key: string): ApiObject | undefined =>
  registry.store.get(storage, key)?.object as ApiObject | undefined;
const pods = (label: string): ApiObject[] =>
  registry.store
    .list('pods', 'default')
    .map((p) => p.object as ApiObject)
    .filter((p) => p.metadata.labels?.['app'] === label);
const create = (storage: string, body: Json): ApiObject =>
  registry.create(resourceNamed(storage), resourceNamed(storage).namespaced ? 'default' : '', body, systemContext())
    .object as ApiObject;
const patch = (storage: string, name: string, change: (draft: ApiObject) => void): void =>
  void registry.modify(
    resourceNamed(storage),
    resourceNamed(storage).namespaced ? 'default' : '',
    name,
    (draft) => {
      change(draft);
      return draft;
    },
    systemContext(),
  );

function playKubelet(pod: ApiObject): void {
  const { name, namespace = '' } = pod.metadata;
  const type = resourceNamed('pods');
  if (pod.metadata.deletionTimestamp !== undefined) {
    deleteObject(registry, type, namespace, name, { gracePeriodSeconds: 0 }, systemContext());
    return;
  }
  if (textAt(pod, 'spec', 'nodeName') === '' || textAt(pod, 'status', 'phase') !== 'Pending') return;
  const image = textAt(recordsAt(pod, 'spec', 'containers')[0], 'image');
  const phase = FATES[image] ?? 'Running';
  const lastTransitionTime = image === 'fresh' ? new Date().toISOString() : '2026-01-01T00:00:00Z';
  const conditions = [{ type: 'Ready', status: phase === 'Running' ? 'True' : 'False', lastTransitionTime }];
  const next = (draft: ApiObject): ApiObject => ({
    ...draft,
    status: { ...recordAt(draft, 'status'), phase, conditions },
  });
  registry.modify(type, namespace, name, next, systemContext(), 'status');
}

const template = (app: string, image: string, more: Json = {}): Json => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'c', image }], ...more },
});

describe('controllers', () => {
  before(async () => {
    server = await startApiServer({ dir });
    registry = server.server.registry;
    registry.store.onChange((change) => {
      if (change.resource === 'pods' && change.type !== 'DELETED')
        setImmediate(() => {
          const current = registry.store.get('pods', change.now.key);
          if (current !== undefined) playKubelet(current.object as ApiObject);
        });
    });
  });
  after(async () => {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  it('says why a pod does not fit, and binds it as soon as it does', async () => {
    create('pods', {
      metadata: { name: 'first' },
      spec: { containers: [{ name: 'c', image: 'ok', resources: { requests: { cpu: '1' } } }] },
    });
    const condition = (name: string): Json | undefined =>
      recordsAt(get('pods', `default/${name}`), 'status', 'conditions').find((c) => c['type'] === 'PodScheduled');
    await until('a reason', () => condition('first')?.['message'] === 'no nodes available to schedule pods');
    create('nodes', {
      metadata: { name: 'n1', labels: { 'kubernetes.io/hostname': 'n1' } },
      status: {
        allocatable: { cpu: '2', memory: '1Gi', pods: '20' },
        conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: new Date().toISOString() }],
      },
    });
    await until('bound', () => textAt(get('pods', 'default/first'), 'spec', 'nodeName') === 'n1');
    create('pods', {
      metadata: { name: 'big' },
      spec: { containers: [{ name: 'c', image: 'ok', resources: { requests: { cpu: '1500m' } } }] },
    });
    await until('refused', () =>
      textAt(condition('big'), 'message').startsWith('0/1 nodes are available: 1 Insufficient cpu.'),
    );
    deleteObject(registry, resourceNamed('pods'), 'default', 'first', {}, systemContext());
    await until('room made', () => textAt(get('pods', 'default/big'), 'spec', 'nodeName') === 'n1');
    deleteObject(registry, resourceNamed('pods'), 'default', 'big', {}, systemContext());
  });

  it('makes the service of the API server and the namespaces of the system anew', async () => {
    for (const [storage, namespace, name] of [
      ['services', 'default', 'kubernetes'],
      ['namespaces', '', 'kube-node-lease'],
    ] as const) {
      const key = namespace === '' ? name : `${namespace}/${name}`;
      const before = get(storage, key);
      assert.ok(before, key);
      deleteObject(registry, resourceNamed(storage), namespace, name, {}, systemContext());
      const isNew = (): boolean => ![undefined, before.metadata.uid].includes(get(storage, key)?.metadata.uid);
      await until(`${key} again`, isNew);
      assert.deepEqual(get(storage, key)?.['spec'], before['spec'], key);
    }
  });

  it('rolls a deployment from one template to the next and back', async () => {
    const spec = (image: string): Json => ({
      replicas: 3,
      selector: { matchLabels: { app: 'dep' } },
      template: template('dep', image),
    });
    create('apps/deployments', { metadata: { name: 'dep' }, spec: spec('ok') });
    const status = (): Json => recordAt(get('apps/deployments', 'default/dep'), 'status');
    const complete = (generation: number) => (): boolean =>
      numberAt(status(), 'observedGeneration') === generation &&
      numberAt(status(), 'updatedReplicas') === 3 &&
      numberAt(status(), 'replicas') === 3 &&
      numberAt(status(), 'availableReplicas') === 3;
    await until('3 available', complete(1));
    patch('apps/deployments', 'dep', (d) => Object.assign(d, { spec: spec('ok:2') }));
    await until('rolled', complete(2));
    await until(
      'only new pods',
      () =>
        pods('dep').length === 3 &&
        pods('dep').every((p) => textAt(recordsAt(p, 'spec', 'containers')[0], 'image') === 'ok:2'),
    );
    assert.equal(
      get('apps/deployments', 'default/dep')?.metadata.annotations?.['deployment.kubernetes.io/revision'],
      '2',
    );
    patch('apps/deployments', 'dep', (d) => Object.assign(d, { spec: spec('ok') }));
    await until('rolled back', complete(3));
    assert.equal(registry.store.list('apps/replicasets', 'default').length, 2, 'the old set is used again');
    patch('apps/deployments', 'dep', (d) => Object.assign(recordAt(d, 'spec'), { replicas: 1 }));
    await until('scaled', () => pods('dep').length === 1);
    deleteObject(
      registry,
      resourceNamed('apps/deployments'),
      'default',
      'dep',
      { propagationPolicy: 'Background' },
      systemContext(),
    );
    await until(
      'all gone',
      () => pods('dep').length === 0 && registry.store.list('apps/replicasets', 'default').length === 0,
    );
  });

  it('foreground deletion waits for dependents, orphaning leaves them', async () => {
    const body = (name: string): Json => ({
      metadata: { name },
      spec: { replicas: 2, selector: { matchLabels: { app: name } }, template: template(name, 'ok') },
    });
    create('apps/replicasets', body('fg'));
    await until('pods', () => pods('fg').length === 2);
    deleteObject(
      registry,
      resourceNamed('apps/replicasets'),
      'default',
      'fg',
      { propagationPolicy: 'Foreground' },
      systemContext(),
    );
    assert.ok(get('apps/replicasets', 'default/fg'), 'still there');
    await until('gone with its pods', () => get('apps/replicasets', 'default/fg') === undefined);
    assert.equal(pods('fg').length, 0);
    create('apps/replicasets', body('orphan'));
    await until('pods', () => pods('orphan').length === 2);
    deleteObject(
      registry,
      resourceNamed('apps/replicasets'),
      'default',
      'orphan',
      { propagationPolicy: 'Orphan' },
      systemContext(),
    );
    await until('set gone', () => get('apps/replicasets', 'default/orphan') === undefined);
    assert.deepEqual(
      pods('orphan').map((p) => p.metadata.ownerReferences),
      [undefined, undefined],
    );
    for (const p of pods('orphan'))
      deleteObject(registry, resourceNamed('pods'), 'default', p.metadata.name, {}, systemContext());
  });

  it('runs jobs to their end, and gives up on hopeless ones', async () => {
    const job = (name: string, image: string, more: Json): Json => ({
      metadata: { name },
      spec: { template: template(name, image, { restartPolicy: 'Never' }), ...more },
    });
    create('batch/jobs', job('good', 'done', { completions: 3, parallelism: 2 }));
    const condition = (name: string, type: string): boolean =>
      recordsAt(get('batch/jobs', `default/${name}`), 'status', 'conditions').some(
        (c) => c['type'] === type && c['status'] === 'True',
      );
    await until('complete', () => condition('good', 'Complete'));
    assert.equal(numberAt(get('batch/jobs', 'default/good'), 'status', 'succeeded'), 3);
    assert.equal(pods('good').length, 3);
    assert.ok(
      pods('good').every((p) => p.metadata.finalizers === undefined),
      'counted pods are let go',
    );
    create('batch/jobs', job('hopeless', 'bad', { backoffLimit: 0 }));
    await until('failed', () => condition('hopeless', 'Failed'));
    assert.equal(numberAt(get('batch/jobs', 'default/hopeless'), 'status', 'failed'), 1);
    create('batch/jobs', job('brief', 'done', { ttlSecondsAfterFinished: 0 }));
    await until('removed', () => get('batch/jobs', 'default/brief') === undefined);
    await until('its pods too', () => pods('brief').length === 0);
  });

  it('takes in the pods that its predecessor left, and lets go of those that got other labels', async () => {
    const spec = { replicas: 2, selector: { matchLabels: { app: 'heir' } }, template: template('heir', 'ok') };
    const ready = (): boolean => numberAt(get('apps/deployments', 'default/heir'), 'status', 'availableReplicas') === 2;
    const names = (): string =>
      pods('heir')
        .map((p) => p.metadata.name)
        .toSorted()
        .join();
    create('apps/deployments', { metadata: { name: 'heir' }, spec });
    await until('available', ready);
    const [first = ''] = names().split(',');
    const before = names();
    const options = { propagationPolicy: 'Orphan' } as const;
    deleteObject(registry, resourceNamed('apps/deployments'), 'default', 'heir', options, systemContext());
    await until('gone', () => get('apps/deployments', 'default/heir') === undefined);
    create('apps/deployments', { metadata: { name: 'heir' }, spec });
    await until('available again', ready);
    assert.equal(names(), before);
    patch('pods', first, (pod) => Object.assign(pod.metadata, { labels: { app: 'looked-at' } }));
    await until('replaced', () => pods('heir').length === 2 && ready());
    assert.deepEqual(get('pods', `default/${first}`)?.metadata.ownerReferences ?? [], []);
    deleteObject(registry, resourceNamed('pods'), 'default', first, {}, systemContext());
    deleteObject(registry, resourceNamed('apps/deployments'), 'default', 'heir', {}, systemContext());
    await until('all gone', () => pods('heir').length === 0);
  });

  it('puts one pod of a daemon set on every node and renews it', async () => {
    const spec = (image: string): Json => ({
      selector: { matchLabels: { app: 'ds' } },
      template: template('ds', image),
    });
    create('apps/daemonsets', { metadata: { name: 'ds' }, spec: spec('ok') });
    await until('available', () => numberAt(get('apps/daemonsets', 'default/ds'), 'status', 'numberAvailable') === 1);
    patch('apps/daemonsets', 'ds', (d) => Object.assign(d, { spec: { ...recordAt(d, 'spec'), ...spec('ok:2') } }));
    await until(
      'renewed',
      () => pods('ds').length === 1 && textAt(recordsAt(pods('ds')[0], 'spec', 'containers')[0], 'image') === 'ok:2',
    );
    deleteObject(
      registry,
      resourceNamed('apps/daemonsets'),
      'default',
      'ds',
      { propagationPolicy: 'Background' },
      systemContext(),
    );
    await until('gone', () => pods('ds').length === 0);
  });

  it('counts a pod of a daemon set as available when it was ready for long enough', async () => {
    const spec = {
      selector: { matchLabels: { app: 'slow' } },
      minReadySeconds: 1,
      template: template('slow', 'fresh'),
    };
    create('apps/daemonsets', { metadata: { name: 'slow' }, spec });
    const status = (): Json => recordAt(get('apps/daemonsets', 'default/slow'), 'status');
    await until('ready', () => numberAt(status(), 'numberReady') === 1);
    await until('available', () => numberAt(status(), 'numberAvailable') === 1);
    deleteObject(registry, resourceNamed('apps/daemonsets'), 'default', 'slow', {}, systemContext());
    await until('gone', () => pods('slow').length === 0);
  });

  it('brings claims and volumes together, and pods wait for it', async () => {
    const size = (storage: string): Json => ({
      accessModes: ['ReadWriteOnce'],
      storageClassName: '',
      capacity: { storage },
    });
    create('persistentvolumeclaims', {
      metadata: { name: 'claim' },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: { storage: '2Gi' } } },
    });
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'claim' } }];
    create('pods', { metadata: { name: 'user' }, spec: { volumes, containers: [{ name: 'c', image: 'ok' }] } });
    await until('a reason', () =>
      JSON.stringify(get('pods', 'default/user')).includes('unbound immediate PersistentVolumeClaims'),
    );
    for (const [name, storage] of [
      ['small', '1Gi'],
      ['huge', '10Gi'],
      ['right', '2Gi'],
    ] as const)
      create('persistentvolumes', {
        metadata: { name },
        spec: { ...size(storage), hostPath: { path: `/tmp/${name}` } },
      });
    await until('bound', () => textAt(get('persistentvolumeclaims', 'default/claim'), 'status', 'phase') === 'Bound');
    const bound = textAt(get('persistentvolumeclaims', 'default/claim'), 'spec', 'volumeName');
    assert.ok(['huge', 'right'].includes(bound), bound);
    assert.equal(textAt(get('persistentvolumes', bound), 'status', 'phase'), 'Bound');
    await until(
      'the rest is available',
      () => textAt(get('persistentvolumes', 'small'), 'status', 'phase') === 'Available',
    );
    await until('the pod is bound', () => textAt(get('pods', 'default/user'), 'spec', 'nodeName') === 'n1');
    deleteObject(registry, resourceNamed('persistentvolumeclaims'), 'default', 'claim', {}, systemContext());
    assert.notEqual(get('persistentvolumeclaims', 'default/claim'), undefined, 'kept for its pod');
    deleteObject(registry, resourceNamed('pods'), 'default', 'user', { gracePeriodSeconds: 0 }, systemContext());
    await until('released', () => textAt(get('persistentvolumes', bound), 'status', 'phase') === 'Released');
  });

  it('fills new namespaces and empties old ones', async () => {
    create('namespaces', { metadata: { name: 'short' } });
    await until(
      'an account and a CA',
      () =>
        get('serviceaccounts', 'short/default') !== undefined &&
        get('configmaps', 'short/kube-root-ca.crt') !== undefined,
    );
    registry.create(
      resourceNamed('configmaps'),
      'short',
      { metadata: { name: 'x', finalizers: ['example.com/hold'] } },
      systemContext(),
    );
    deleteObject(registry, resourceNamed('namespaces'), '', 'short', {}, systemContext());
    await until('emptied but for what is held', () => registry.store.list('configmaps', 'short').length === 1);
    assert.equal(textAt(get('namespaces', 'short'), 'status', 'phase'), 'Terminating');
    registry.modify(
      resourceNamed('configmaps'),
      'short',
      'x',
      (d) => ({ ...d, metadata: { ...d.metadata, finalizers: [] } }),
      systemContext(),
    );
    await until('gone', () => get('namespaces', 'short') === undefined);
  });
});
