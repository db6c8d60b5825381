// Stateful sets, histories of templates and cron jobs on a whole server, with a kubelet that only says yes.
import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ApiError } from '../api/api-error.ts';
import { deleteObject } from '../api/deletion.ts';
import { numberAt, recordAt, recordsAt, textAt, type ApiObject, type Json } from '../api/objects.ts';
import type { Registry } from '../api/registry.ts';
import { resourceNamed } from '../api/resources.ts';
import { strategicMerge } from '../api/strategic-merge.ts';
import { mergeSchemaOf } from '../api/merge-schema.ts';
import { systemContext } from '../seed.ts';
import { startApiServer, type RunningApiServer } from '../start-api-server.ts';
import { until } from '../../../test/harness/until.ts';

let server: RunningApiServer;
let registry: Registry;
const dir = mkdtempSync(join(tmpdir(), 'kts-sets-'));

const get = (storage: string, name: string): ApiObject | undefined =>
  registry.store.get(storage, `default/${name}`)?.object as ApiObject | undefined;
const listed = (storage: string): ApiObject[] =>
  registry.store.list(storage, 'default').map((stored) => stored.object as ApiObject);
const pods = (app: string): ApiObject[] => listed('pods').filter((p) => p.metadata.labels?.['app'] === app);
const names = (app: string): string =>
  pods(app)
    .map((p) => p.metadata.name)
    .toSorted()
    .join(' ');
const create = (storage: string, body: Json): ApiObject =>
  registry.create(resourceNamed(storage), 'default', body, systemContext()).object as ApiObject;
const patch = (storage: string, name: string, change: Json, subresource = ''): ApiObject =>
  registry.modify(
    resourceNamed(storage),
    'default',
    name,
    (draft) => strategicMerge(draft, change, mergeSchemaOf(draft.kind)) as ApiObject,
    systemContext(),
    subresource,
  ).object as ApiObject;
const remove = (storage: string, name: string): void =>
  void deleteObject(
    registry,
    resourceNamed(storage),
    'default',
    name,
    { propagationPolicy: 'Background' },
    systemContext(),
  );
const revisionsOf = (app: string): ApiObject[] =>
  listed('apps/controllerrevisions').filter((r) => r.metadata.labels?.['app'] === app);
const numbersOf = (app: string): number[] =>
  revisionsOf(app)
    .map((r) => numberAt(r, 'revision') ?? 0)
    .toSorted((a, b) => a - b);
const imageOf = (pod: ApiObject | undefined): string => textAt(recordsAt(pod, 'spec', 'containers')[0], 'image');

function playKubelet(pod: ApiObject): void {
  const { name, deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined) {
    deleteObject(registry, resourceNamed('pods'), 'default', name, { gracePeriodSeconds: 0 }, systemContext());
    return;
  }
  if (textAt(pod, 'spec', 'nodeName') === '' || textAt(pod, 'status', 'phase') !== 'Pending') return;
  const phase = imageOf(pod) === 'done' ? 'Succeeded' : 'Running';
  const status = imageOf(pod) === 'broken' ? 'False' : phase === 'Running' ? 'True' : 'False';
  const conditions = [{ type: 'Ready', status, lastTransitionTime: '2026-01-01T00:00:00Z' }];
  patch('pods', name, { status: { phase, conditions } }, 'status');
}

const template = (app: string, image: string, more: Json = {}): Json => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'c', image }], ...more },
});
const setOf = (app: string, image: string, more: Json = {}): Json => ({
  metadata: { name: app },
  spec: {
    replicas: 2,
    serviceName: 'svc',
    selector: { matchLabels: { app } },
    template: template(app, image),
    ...more,
  },
});

describe('sets and schedules', () => {
  before(async () => {
    server = await startApiServer({ dir });
    registry = server.server.registry;
    registry.store.onChange((change) => {
      if (change.resource === 'pods' && change.type !== 'DELETED')
        setImmediate(() => {
          const now = registry.store.get('pods', change.now.key);
          if (now !== undefined) playKubelet(now.object as ApiObject);
        });
    });
    const allocatable = { cpu: '64', memory: '64Gi', pods: '100' };
    const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: new Date().toISOString() }];
    const node = { metadata: { name: 'n1' }, status: { allocatable, conditions } };
    registry.create(resourceNamed('nodes'), '', node, systemContext());
  });
  after(async () => {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  it('makes the pods of a stateful set in order, with names, labels, hosts and claims', async () => {
    const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
    const volumeClaimTemplates = [{ metadata: { name: 'data' }, spec: claim }];
    const containers = [{ name: 'c', image: 'ok', volumeMounts: [{ name: 'data', mountPath: '/data' }] }];
    const body = setOf('db', 'ok', { volumeClaimTemplates, template: template('db', 'ok', { containers }) });
    create('apps/statefulsets', body);
    await until('the first pod', () => names('db') === 'db-0');
    const pod = get('pods', 'db-0');
    assert.equal(textAt(pod, 'spec', 'hostname'), 'db-0');
    assert.equal(textAt(pod, 'spec', 'subdomain'), 'svc');
    assert.equal(pod?.metadata.labels?.['statefulset.kubernetes.io/pod-name'], 'db-0');
    assert.equal(pod.metadata.labels['apps.kubernetes.io/pod-index'], '0');
    const volume = recordsAt(pod, 'spec', 'volumes').find((v) => v['name'] === 'data');
    assert.equal(textAt(volume, 'persistentVolumeClaim', 'claimName'), 'data-db-0');
    assert.equal(get('persistentvolumeclaims', 'data-db-0')?.metadata.labels?.['app'], 'db');
    assert.equal(names('db'), 'db-0', 'the second waits for the first, which waits for its claim');
    remove('apps/statefulsets', 'db');
    await until('the pods are gone', () => names('db') === '');
    assert.ok(get('persistentvolumeclaims', 'data-db-0'), 'the claim stays');
  });

  it('takes in the pods that the set before it left', async () => {
    create('apps/statefulsets', setOf('heir', 'ok'));
    await until('two pods', () => names('heir') === 'heir-0 heir-1');
    const uids = (): (string | undefined)[] => ['heir-0', 'heir-1'].map((name) => get('pods', name)?.metadata.uid);
    const before = uids();
    const options = { propagationPolicy: 'Orphan' } as const;
    deleteObject(registry, resourceNamed('apps/statefulsets'), 'default', 'heir', options, systemContext());
    await until('gone', () => get('apps/statefulsets', 'heir') === undefined);
    const set = create('apps/statefulsets', setOf('heir', 'ok'));
    const owners = (): string[] =>
      ['heir-0', 'heir-1'].map((n) => get('pods', n)?.metadata.ownerReferences?.[0]?.uid ?? '');
    await until('owned by the new one', () => owners().every((uid) => uid === set.metadata.uid));
    assert.deepEqual(uids(), before);
    remove('apps/statefulsets', 'heir');
    await until('the pods are gone', () => names('heir') === '');
  });

  it('scales a stateful set, renews it from the top, keeps a history and goes back in it', async () => {
    const status = (): Json => recordAt(get('apps/statefulsets', 'web'), 'status');
    const rolled = (replicas: number): boolean =>
      numberAt(status(), 'updatedReplicas') === replicas &&
      numberAt(status(), 'readyReplicas') === replicas &&
      status()['currentRevision'] === status()['updateRevision'];
    create('apps/statefulsets', setOf('web', 'ok'));
    await until('two pods', () => rolled(2));
    patch('apps/statefulsets', 'web', { spec: { replicas: 3 } });
    await until('three', () => rolled(3) && names('web') === 'web-0 web-1 web-2');
    const uids = new Set(pods('web').map((p) => p.metadata.uid));
    const containers = [{ name: 'c', image: 'ok:2' }];
    patch('apps/statefulsets', 'web', { spec: { template: { spec: { containers } } } });
    await until('renewed', () => rolled(3) && pods('web').every((p) => imageOf(p) === 'ok:2'));
    assert.ok(pods('web').every((p) => !uids.has(p.metadata.uid)));
    const history = revisionsOf('web');
    assert.deepEqual(numbersOf('web'), [1, 2]);
    patch('apps/statefulsets', 'web', history.find((r) => r['revision'] === 1)?.['data'] as Json);
    await until('back', () => rolled(3) && pods('web').every((p) => imageOf(p) === 'ok'));
    assert.deepEqual(numbersOf('web'), [2, 3], 'the old revision is the newest again');
    patch('apps/statefulsets', 'web', { spec: { replicas: 1 } });
    await until('one', () => names('web') === 'web-0');
    const broken = [{ name: 'c', image: 'broken' }];
    patch('apps/statefulsets', 'web', { spec: { replicas: 2, template: { spec: { containers: broken } } } });
    await until('the new pod', () => imageOf(get('pods', 'web-1')) === 'broken');
    assert.equal(imageOf(get('pods', 'web-0')), 'ok', 'what is not ready holds up the rest');
    remove('apps/statefulsets', 'web');
    await until('gone', () => names('web') === '');
    await until('the history too', () => revisionsOf('web').length === 0);
  });

  it('lets claims go with their set or with pods that are too many, where the set says so', async () => {
    const claim = { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: { storage: '1Gi' } } };
    const more = {
      podManagementPolicy: 'Parallel',
      volumeClaimTemplates: [{ metadata: { name: 'd' }, spec: claim }],
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Delete' },
    };
    create('apps/statefulsets', setOf('tidy', 'ok', more));
    await until('two pods at once', () => names('tidy') === 'tidy-0 tidy-1');
    patch('apps/statefulsets', 'tidy', { spec: { replicas: 1 } });
    await until('one claim', () => get('persistentvolumeclaims', 'd-tidy-1') === undefined);
    remove('apps/statefulsets', 'tidy');
    await until('no claim', () => get('persistentvolumeclaims', 'd-tidy-0') === undefined);
  });

  it('keeps the history of a daemon set', async () => {
    const spec = { selector: { matchLabels: { app: 'ds' } }, template: template('ds', 'ok') };
    create('apps/daemonsets', { metadata: { name: 'ds' }, spec });
    await until('a pod', () => names('ds') !== '');
    patch('apps/daemonsets', 'ds', { spec: { template: { spec: { containers: [{ name: 'c', image: 'ok:2' }] } } } });
    await until('renewed', () => pods('ds').every((p) => imageOf(p) === 'ok:2'));
    const history = revisionsOf('ds');
    assert.deepEqual(numbersOf('ds'), [1, 2]);
    const label = pods('ds')[0]?.metadata.labels?.['controller-revision-hash'];
    assert.ok(history.some((r) => r.metadata.labels?.['controller-revision-hash'] === label));
    remove('apps/daemonsets', 'ds');
  });

  it('starts the job of a cron job that is due, and no second one where it must not', async () => {
    const jobTemplate = (image: string): Json => ({
      metadata: { labels: { cron: image } },
      spec: { template: template('cron', image, { restartPolicy: 'Never' }) },
    });
    const spec = { schedule: '@every 1s', concurrencyPolicy: 'Forbid' };
    create('batch/cronjobs', { metadata: { name: 'often' }, spec: { ...spec, jobTemplate: jobTemplate('done') } });
    const jobs = (name: string): ApiObject[] =>
      listed('batch/jobs').filter((j) => j.metadata.ownerReferences?.[0]?.name === name);
    await until('a success', () => textAt(get('batch/cronjobs', 'often'), 'status', 'lastSuccessfulTime') !== '');
    assert.match(jobs('often')[0]?.metadata.name ?? '', /^often-\d+$/);
    assert.equal(jobs('often')[0]?.metadata.labels?.['cron'], 'done');
    assert.notEqual(
      jobs('often')[0]?.metadata.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp'],
      undefined,
    );
    create('batch/cronjobs', { metadata: { name: 'long' }, spec: { ...spec, jobTemplate: jobTemplate('ok') } });
    await until('one that waits', () =>
      listed('events').some(
        (e) => textAt(e, 'involvedObject', 'name') === 'long' && e['reason'] === 'JobAlreadyActive',
      ),
    );
    assert.equal(jobs('long').length, 1);
    assert.equal(
      recordsAt(get('batch/cronjobs', 'long'), 'status', 'active')[0]?.['name'],
      jobs('long')[0]?.metadata.name,
    );
    for (const name of ['often', 'long']) remove('batch/cronjobs', name);
    await until('their jobs go', () => jobs('often').length + jobs('long').length === 0);
  });

  it('refuses what makes no sense, and says where', () => {
    const cron = (more: Json): Json => ({
      metadata: { name: 'x' },
      spec: { schedule: '* * * * *', jobTemplate: { spec: { template: template('x', 'ok') } }, ...more },
    });
    const never = { spec: { template: template('x', 'ok', { restartPolicy: 'Never' }) } };
    const rows: readonly (readonly [string, Json, RegExp])[] = [
      [
        'batch/cronjobs',
        cron({}),
        /jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure"/,
      ],
      [
        'batch/cronjobs',
        cron({ schedule: '* * *', jobTemplate: never }),
        /spec.schedule: Invalid value: "\* \* \*": expected exactly 5/,
      ],
      [
        'batch/cronjobs',
        cron({ timeZone: 'Mars', jobTemplate: never }),
        /spec.timeZone: Invalid value: "Mars": unknown time zone Mars/,
      ],
      [
        'batch/jobs',
        { metadata: { name: 'x' }, spec: { template: template('x', 'ok') } },
        /restartPolicy: Required value: valid values: "OnFailure", "Never"/,
      ],
      ['apps/statefulsets', setOf('x', 'ok', { podManagementPolicy: 'Any' }), /must be 'OrderedReady' or 'Parallel'/],
      ['apps/statefulsets', setOf('x', 'ok', { selector: { matchLabels: { a: 'b' } } }), /does not match template/],
    ];
    for (const [storage, body, complaint] of rows)
      assert.throws(
        () => create(storage, body),
        (err: unknown) => err instanceof ApiError && err.code === 422 && complaint.test(err.message),
        `${storage} ${complaint.source}`,
      );
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'd' }, spec: {} };
    const context = { ...systemContext(), fieldValidation: 'Strict' as const };
    const fixed = setOf('fixed', 'ok', { replicas: 0, volumeClaimTemplates: [claim] });
    registry.create(resourceNamed('apps/statefulsets'), 'default', fixed, context);
    assert.throws(
      () => patch('apps/statefulsets', 'fixed', { spec: { serviceName: 'other' } }),
      /updates to statefulset spec for fields other than 'replicas'/,
    );
  });
});
