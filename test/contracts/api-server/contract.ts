// What a kubelet and kubectl count on in an API server. Runs on the embedded server and on the real one.
import { strict as assert } from 'node:assert';
import { after, before, it } from 'node:test';
import { dig, type Json, type Reply } from './client.ts';
import { podBody, type Scene } from './scene.ts';
import type { TestServer } from './servers.ts';
import { accessContract } from './access-contract.ts';
import { certificateContract } from './certificate-contract.ts';
import { resizeContract } from './resize-contract.ts';
import { serviceContract } from './service-contract.ts';
import { watchContract } from './watch-contract.ts';
import { workloadContract } from './workload-contract.ts';

export function apiServerContract(open: () => Promise<TestServer>): void {
  const scene = {} as Scene;
  before(async () => {
    scene.server = await open();
    scene.api = scene.server.admin;
    scene.ns = 'contract';
    scene.path = '/api/v1/namespaces/contract';
    await scene.api.post('/api/v1/namespaces', { metadata: { name: scene.ns } });
    await scene.api.post(`${scene.path}/serviceaccounts`, { metadata: { name: 'default' } });
  });
  after(() => scene.server.stop());

  objectContract(scene);
  patchContract(scene);
  deletionContract(scene);
  podContract(scene);
  serviceContract(scene);
  workloadContract(scene);
  watchContract(scene);
  accessContract(scene);
  certificateContract(scene);
}

function objectContract(s: Scene): void {
  it('creates with uid, version, time; refuses what exists, what is missing, what is elsewhere', async () => {
    const body = { metadata: { name: 'a' }, data: { k: 'v' } };
    const made = await s.api.post(`${s.path}/configmaps`, body);
    assert.equal(made.status, 201);
    assert.match(String(dig(made.body, 'metadata', 'uid')), /^[0-9a-f-]{36}$/);
    assert.match(String(dig(made.body, 'metadata', 'creationTimestamp')), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const again = await s.api.post(`${s.path}/configmaps`, body);
    assert.equal(again.status, 409);
    assert.equal(again.body['reason'], 'AlreadyExists');
    assert.equal(again.body['message'], 'configmaps "a" already exists');
    assert.deepEqual(again.body['details'], { name: 'a', kind: 'configmaps' });
    const missing = await s.api.get(`${s.path}/configmaps/nope`);
    assert.equal(missing.status, 404);
    assert.equal(missing.body['message'], 'configmaps "nope" not found');
    assert.equal(missing.body['reason'], 'NotFound');
    const lost = await s.api.post('/api/v1/namespaces/none/configmaps', body);
    assert.equal(lost.status, 404);
    assert.equal(lost.body['message'], 'namespaces "none" not found');
    const elsewhere = await s.api.post(`${s.path}/configmaps`, { metadata: { name: 'b', namespace: 'other' } });
    assert.equal(elsewhere.status, 400);
  });

  it('makes names from generateName and refuses bad ones', async () => {
    const made = await s.api.post(`${s.path}/configmaps`, { metadata: { generateName: 'gen-' } });
    assert.match(String(dig(made.body, 'metadata', 'name')), /^gen-[a-z0-9]{5}$/);
    const bad = await s.api.post(`${s.path}/configmaps`, { metadata: { name: 'Bad_Name' } });
    assert.equal(bad.status, 422);
    assert.equal(bad.body['reason'], 'Invalid');
    assert.equal(dig(bad.body, 'details', 'causes', 0, 'field'), 'metadata.name');
    assert.match(
      String(bad.body['message']),
      /^ConfigMap "Bad_Name" is invalid: metadata\.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain/,
    );
  });

  it('updates only the version it is given', async () => {
    const made = await s.api.post(`${s.path}/configmaps`, { metadata: { name: 'upd' }, data: { a: '1' } });
    const first = { ...made.body, data: { a: '2' } };
    const done = await s.api.put(`${s.path}/configmaps/upd`, first);
    assert.equal(done.status, 200);
    assert.notEqual(dig(done.body, 'metadata', 'resourceVersion'), dig(made.body, 'metadata', 'resourceVersion'));
    const stale = await s.api.put(`${s.path}/configmaps/upd`, first);
    assert.equal(stale.status, 409);
    assert.equal(
      stale.body['message'],
      'Operation cannot be fulfilled on configmaps "upd": the object has been modified; please apply your changes to the latest version and try again',
    );
    const same = await s.api.put(`${s.path}/configmaps/upd`, done.body);
    assert.equal(
      dig(same.body, 'metadata', 'resourceVersion'),
      dig(done.body, 'metadata', 'resourceVersion'),
      'a write that changes nothing is none',
    );
    const blind = await s.api.put(`${s.path}/configmaps/upd`, { metadata: { name: 'upd' }, data: { a: '3' } });
    assert.equal(blind.status, 200);
    assert.equal(dig(blind.body, 'metadata', 'uid'), dig(made.body, 'metadata', 'uid'));
  });

  it('reads, changes and removes a namespace', async () => {
    await s.api.post('/api/v1/namespaces', { metadata: { name: 'short' } });
    const read = await s.api.get('/api/v1/namespaces/short');
    assert.equal(dig(read.body, 'status', 'phase'), 'Active');
    assert.equal(dig(read.body, 'metadata', 'labels', 'kubernetes.io/metadata.name'), 'short');
    assert.equal((await s.api.merge('/api/v1/namespaces/short', { metadata: { labels: { a: 'b' } } })).status, 200);
    const kept = await s.api.delete('/api/v1/namespaces/default');
    assert.equal(kept.status, 403);
    assert.equal(kept.body['message'], 'namespaces "default" is forbidden: this namespace may not be deleted');
    const gone = await s.api.delete('/api/v1/namespaces/short');
    assert.equal(gone.status, 200);
    assert.equal(dig(gone.body, 'status', 'phase'), 'Terminating');
  });

  it('dry runs leave nothing', async () => {
    const dry = await s.api.post(`${s.path}/configmaps?dryRun=All`, { metadata: { name: 'dry' } });
    assert.equal(dry.status, 201);
    assert.equal((await s.api.get(`${s.path}/configmaps/dry`)).status, 404);
  });

  it('lists by label and field, in pages of one snapshot', async () => {
    for (const i of [1, 2, 3, 4, 5])
      await s.api.post(`${s.path}/secrets`, {
        metadata: { name: `page-${i}`, labels: { page: 'yes', odd: String(i % 2) } },
      });
    const names = (body: Json): unknown[] => (body['items'] as Json[]).map((i) => dig(i, 'metadata', 'name'));
    const odd = await s.api.get(`${s.path}/secrets?labelSelector=${encodeURIComponent('page,odd in (1)')}`);
    assert.deepEqual(names(odd.body), ['page-1', 'page-3', 'page-5']);
    const not = await s.api.get(`${s.path}/secrets?labelSelector=${encodeURIComponent('page=yes,odd!=1')}`);
    assert.deepEqual(names(not.body), ['page-2', 'page-4']);
    const one = await s.api.get(`${s.path}/secrets?fieldSelector=metadata.name%3Dpage-3`);
    assert.deepEqual(names(one.body), ['page-3']);
    const wrong = await s.api.get(`${s.path}/secrets?fieldSelector=spec.foo%3Dx`);
    assert.equal(wrong.status, 400);
    assert.match(String(wrong.body['message']), /field label not supported: spec\.foo/);
    const first = await s.api.get(`${s.path}/secrets?labelSelector=page&limit=2`);
    assert.deepEqual(names(first.body), ['page-1', 'page-2']);
    await s.api.delete(`${s.path}/secrets/page-4`);
    const token = encodeURIComponent(String(dig(first.body, 'metadata', 'continue')));
    const second = await s.api.get(`${s.path}/secrets?labelSelector=page&limit=2&continue=${token}`);
    assert.deepEqual(names(second.body), ['page-3', 'page-4']);
    assert.equal(dig(second.body, 'metadata', 'resourceVersion'), dig(first.body, 'metadata', 'resourceVersion'));
  });

  it('drops fields nobody knows, with the noise that was asked for', async () => {
    const body = {
      metadata: { name: 'odd', creationTimestamp: null },
      spec: { ports: [{ port: 1, prot: 'TCP' }] },
      extra: 1,
    };
    const strict = await s.api.post(`${s.path}/services?fieldValidation=Strict`, body);
    assert.equal(strict.status, 400);
    assert.match(String(strict.body['message']), /unknown field "extra"/);
    assert.match(String(strict.body['message']), /unknown field "spec\.ports\[0\]\.prot"/);
    const warned = await s.api.post(`${s.path}/services?fieldValidation=Warn&dryRun=All`, body);
    assert.equal(warned.status, 201);
    assert.match(String(warned.headers['warning']), /unknown field \\"extra\\"/);
    assert.equal(warned.body['extra'], undefined);
    assert.equal(
      (await s.api.post(`${s.path}/services?fieldValidation=Ignore&dryRun=All`, body)).headers['warning'],
      undefined,
    );
  });

  it('refuses values of the wrong type, and says where', async () => {
    for (const [kind, body, why] of [
      ['configmaps', { data: { a: 1 } }, 'cannot unmarshal number into Go struct field ConfigMap.data of type string'],
      ['secrets', { data: { a: '%%' } }, 'illegal base64 data at input byte 0'],
      [
        'services',
        { spec: { ports: [{ port: '80' }] } },
        'into Go struct field ServicePort.spec.ports.port of type int32',
      ],
    ] as const) {
      const refused = await s.api.post(`${s.path}/${kind}`, { metadata: { name: 'types' }, ...body });
      assert.equal(refused.status, 400, why);
      assert.match(String(refused.body['message']), /^\w+ in version "v1" cannot be handled as a \w+: /);
      assert.ok(String(refused.body['message']).endsWith(why), String(refused.body['message']));
    }
  });

  it('keeps secrets encoded and immutable things as they are', async () => {
    const made = await s.api.post(`${s.path}/secrets`, {
      metadata: { name: 'plain' },
      stringData: { a: 'x' },
      immutable: true,
    });
    assert.deepEqual(made.body['data'], { a: Buffer.from('x').toString('base64') });
    assert.equal(made.body['type'], 'Opaque');
    assert.equal(made.body['stringData'], undefined);
    const change = await s.api.merge(`${s.path}/secrets/plain`, { data: { a: 'eQ==' } });
    assert.equal(change.status, 422);
    assert.match(String(change.body['message']), /data: Forbidden: field is immutable when `immutable` is set/);
  });

  it('answers as table, as metadata, and refuses what it cannot say', async () => {
    const table = await s.api.get(`${s.path}/configmaps`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
    });
    assert.equal(table.body['kind'], 'Table');
    assert.deepEqual(
      (table.body['columnDefinitions'] as Json[]).map((c) => c['name']),
      ['Name', 'Data', 'Age'],
    );
    const meta = await s.api.get(`${s.path}/configmaps/a`, {
      accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
    });
    assert.equal(meta.body['kind'], 'PartialObjectMetadata');
    assert.equal(meta.body['data'], undefined);
    assert.equal((await s.api.get(`${s.path}/configmaps/a`, { accept: 'text/html' })).status, 406);
    assert.equal((await s.api.get('/apis/nope/v1/things')).status, 404);
    assert.equal((await s.api.request('DELETE', '/api/v1/namespaces')).status, 405);
  });
}

function patchContract(s: Scene): void {
  it('merges JSON, applies JSON patches, refuses what does not fit', async () => {
    await s.api.post(`${s.path}/configmaps`, { metadata: { name: 'patch' }, data: { a: '1', b: '2' } });
    const merged = await s.api.merge(`${s.path}/configmaps/patch`, { data: { a: null, c: '3' } });
    assert.deepEqual(merged.body['data'], { b: '2', c: '3' });
    const patched = await s.api.jsonPatch(`${s.path}/configmaps/patch`, [
      { op: 'test', path: '/data/b', value: '2' },
      { op: 'replace', path: '/data/b', value: '4' },
      { op: 'add', path: '/metadata/labels', value: { 'a/b': 'c' } },
    ]);
    assert.deepEqual(patched.body['data'], { b: '4', c: '3' });
    const failed = await s.api.jsonPatch(`${s.path}/configmaps/patch`, [{ op: 'test', path: '/data/b', value: 'no' }]);
    assert.equal(failed.status, 422);
    const stale = await s.api.merge(`${s.path}/configmaps/patch`, { metadata: { resourceVersion: '1' } });
    assert.equal(stale.status, 409);
    const unknown = await s.api.request('PATCH', `${s.path}/configmaps/patch`, '{}', {
      'content-type': 'application/foo',
    });
    assert.equal(unknown.status, 415);
    assert.equal((await s.api.merge(`${s.path}/configmaps/none`, {})).status, 404);
  });

  it('applies: merges, prunes what its manager gave up, knows conflicts', async () => {
    const path = `${s.path}/configmaps/applied`;
    const apply = (manager: string, data: Json, more = ''): Promise<Reply> =>
      s.api.request(
        'PATCH',
        `${path}?fieldManager=${manager}${more}`,
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data },
        { 'content-type': 'application/apply-patch+yaml' },
      );
    assert.equal((await apply('one', { a: '1', b: '1' })).status, 201);
    const both = await apply('two', { c: '2' });
    assert.equal(both.status, 200);
    assert.deepEqual(both.body['data'], { a: '1', b: '1', c: '2' });
    const less = await apply('one', { a: '1' });
    assert.deepEqual(less.body['data'], { a: '1', c: '2' });
    const again = await apply('one', { a: '1' });
    assert.equal(dig(again.body, 'metadata', 'resourceVersion'), dig(less.body, 'metadata', 'resourceVersion'));
    const conflict = await apply('two', { a: '2', c: '2' });
    assert.equal(conflict.status, 409);
    assert.equal(conflict.body['message'], 'Apply failed with 1 conflict: conflict with "one": .data.a');
    assert.deepEqual(dig(conflict.body, 'details', 'causes'), [
      { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.a' },
    ]);
    const forced = await apply('two', { a: '2', c: '2' }, '&force=true');
    assert.deepEqual(forced.body['data'], { a: '2', c: '2' });
    const owners = dig(forced.body, 'metadata', 'managedFields') as Json[];
    assert.deepEqual(
      owners.map((o) => [o['manager'], o['operation'], o['fieldsType'], o['fieldsV1']]),
      [['two', 'Apply', 'FieldsV1', { 'f:data': { 'f:a': {}, 'f:c': {} } }]],
    );
    assert.equal((await apply('', { a: '1' })).status, 422);
    await s.api.merge(path, { data: { c: '3' } });
    const taken = await apply('two', { a: '2', c: '2' });
    assert.equal(taken.status, 409);
    assert.match(
      String(taken.body['message']),
      /^Apply failed with 1 conflict: conflict with ".*" using v1: \.data\.c$/,
    );
  });

  it('merges lists by their keys: order, deletion, replacement', async () => {
    await s.api.post(`${s.path}/pods`, podBody('smp', { nodeName: 'n1' }));
    const path = `${s.path}/pods/smp/status`;
    const uid = dig((await s.api.get(`${s.path}/pods/smp`)).body, 'metadata', 'uid');
    const condition = (type: string, status: string): Json => ({
      type,
      status,
      lastProbeTime: null,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    });
    await s.api.strategic(path, {
      metadata: { uid },
      status: { conditions: [condition('Ready', 'False'), condition('Initialized', 'True')], message: 'm' },
    });
    const one = await s.api.strategic(path, {
      metadata: { uid },
      status: {
        '$setElementOrder/conditions': [{ type: 'Initialized' }, { type: 'Ready' }],
        conditions: [{ type: 'Ready', status: 'True' }],
        message: null,
      },
    });
    assert.deepEqual(
      (dig(one.body, 'status', 'conditions') as Json[]).map((c) => [c['type'], c['status']]),
      [
        ['Initialized', 'True'],
        ['Ready', 'True'],
      ],
    );
    assert.equal(dig(one.body, 'status', 'message'), undefined);
    const gone = await s.api.strategic(path, { status: { conditions: [{ $patch: 'delete', type: 'Initialized' }] } });
    assert.deepEqual(
      (dig(gone.body, 'status', 'conditions') as Json[]).map((c) => c['type']),
      ['Ready'],
    );
    const other = await s.api.strategic(path, {
      metadata: { uid: '00000000-0000-0000-0000-000000000000' },
      status: { message: 'x' },
    });
    assert.equal(other.status, 422);
    assert.match(String(other.body['message']), /metadata\.uid: Invalid value: "0{8}-.*": field is immutable/);
    const whole = {
      ...one.body,
      metadata: { ...(one.body['metadata'] as Json), uid: '00000000-0000-0000-0000-000000000000' },
    };
    const replaced = await s.api.put(path, whole);
    assert.equal(replaced.status, 409, 'of a replacement it is a precondition');
    assert.match(
      String(replaced.body['message']),
      /Precondition failed: UID in precondition: 0{8}-.*, UID in object meta: /,
    );
  });

  it('keeps status and the rest apart', async () => {
    const api = `${s.path}/pods/smp`;
    const status = await s.api.strategic(`${api}/status`, {
      metadata: { labels: { l: '1' } },
      spec: { activeDeadlineSeconds: 5 },
      status: { phase: 'Running' },
    });
    assert.equal(dig(status.body, 'spec', 'activeDeadlineSeconds'), undefined);
    assert.equal(dig(status.body, 'status', 'phase'), 'Running');
    assert.equal(dig(status.body, 'status', 'qosClass'), 'BestEffort');
    const spec = await s.api.strategic(api, { status: { phase: 'Failed' }, metadata: { annotations: { a: 'b' } } });
    assert.equal(dig(spec.body, 'status', 'phase'), 'Running');
    assert.equal(dig(spec.body, 'metadata', 'annotations', 'a'), 'b');
  });
}

function deletionContract(s: Scene): void {
  it('waits for finalizers', async () => {
    await s.api.post(`${s.path}/configmaps`, { metadata: { name: 'fin', finalizers: ['example.com/hold'] } });
    const asked = await s.api.delete(`${s.path}/configmaps/fin`);
    assert.equal(asked.status, 200);
    const held = await s.api.get(`${s.path}/configmaps/fin`);
    assert.equal(typeof dig(held.body, 'metadata', 'deletionTimestamp'), 'string');
    await s.api.merge(`${s.path}/configmaps/fin`, { metadata: { finalizers: null } });
    assert.equal((await s.api.get(`${s.path}/configmaps/fin`)).status, 404);
  });

  it('honours preconditions and tells what went', async () => {
    const made = await s.api.post(`${s.path}/configmaps`, { metadata: { name: 'pre' } });
    const wrong = await s.api.delete(`${s.path}/configmaps/pre`, { preconditions: { uid: 'x' } });
    assert.equal(wrong.status, 409);
    assert.match(String(wrong.body['message']), /the UID in the precondition \(x\) does not match the UID in record/);
    const uid = dig(made.body, 'metadata', 'uid');
    const gone = await s.api.delete(`${s.path}/configmaps/pre`, { preconditions: { uid } });
    assert.equal(gone.body['status'], 'Success');
    assert.deepEqual(gone.body['details'], { name: 'pre', kind: 'configmaps', uid });
  });

  it('gives bound pods their grace, shortens it, and lets unbound and finished ones go', async () => {
    await s.api.post(`${s.path}/pods`, podBody('loose'));
    assert.equal((await s.api.delete(`${s.path}/pods/loose`)).status, 200);
    assert.equal((await s.api.get(`${s.path}/pods/loose`)).status, 404);
    await s.api.post(`${s.path}/pods`, podBody('bound', { nodeName: 'n1', terminationGracePeriodSeconds: 20 }));
    const asked = await s.api.delete(`${s.path}/pods/bound`);
    assert.equal(dig(asked.body, 'metadata', 'deletionGracePeriodSeconds'), 20);
    assert.equal(dig(asked.body, 'metadata', 'generation'), 2);
    const longer = await s.api.delete(`${s.path}/pods/bound`, { gracePeriodSeconds: 60 });
    assert.equal(dig(longer.body, 'metadata', 'deletionGracePeriodSeconds'), 20);
    const shorter = await s.api.delete(`${s.path}/pods/bound`, { gracePeriodSeconds: 5 });
    assert.equal(dig(shorter.body, 'metadata', 'deletionGracePeriodSeconds'), 5);
    await s.api.delete(`${s.path}/pods/bound`, { gracePeriodSeconds: 0 });
    assert.equal((await s.api.get(`${s.path}/pods/bound`)).status, 404);
    await s.api.post(`${s.path}/pods`, podBody('done', { nodeName: 'n1' }));
    await s.api.strategic(`${s.path}/pods/done/status`, { status: { phase: 'Succeeded' } });
    await s.api.delete(`${s.path}/pods/done`);
    assert.equal((await s.api.get(`${s.path}/pods/done`)).status, 404);
  });

  it('deletes collections by selector', async () => {
    for (const i of [1, 2])
      await s.api.post(`${s.path}/configmaps`, { metadata: { name: `many-${i}`, labels: { many: 'yes' } } });
    assert.equal((await s.api.delete(`${s.path}/configmaps?labelSelector=many%3Dyes`)).status, 200);
    assert.deepEqual((await s.api.get(`${s.path}/configmaps?labelSelector=many`)).body['items'], []);
  });
}

function podContract(s: Scene): void {
  it('fills in what a pod leaves out', async () => {
    const made = await s.api.post(`${s.path}/pods`, podBody('defaults'));
    assert.equal(made.status, 201);
    const spec = made.body['spec'] as Json;
    const volume = dig(spec, 'volumes', 0, 'name');
    assert.match(String(volume), /^kube-api-access-[a-z0-9]{5}$/);
    assert.deepEqual(dig(spec, 'containers', 0, 'volumeMounts'), [
      { name: volume, readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
    ]);
    assert.deepEqual(
      [
        spec['restartPolicy'],
        spec['dnsPolicy'],
        spec['priority'],
        spec['preemptionPolicy'],
        spec['serviceAccountName'],
        spec['terminationGracePeriodSeconds'],
      ],
      ['Always', 'ClusterFirst', 0, 'PreemptLowerPriority', 'default', 30],
    );
    assert.equal((spec['tolerations'] as Json[]).length, 2);
    assert.equal(dig(spec, 'volumes', 0, 'projected', 'defaultMode'), 420);
    assert.deepEqual(made.body['status'], { phase: 'Pending', qosClass: 'BestEffort' });
    assert.equal(dig(made.body, 'metadata', 'generation'), 1);
  });

  it('does not show what is empty, unless empty means something', async () => {
    const made = await s.api.post(
      `${s.path}/pods`,
      podBody('zero', { hostNetwork: false, hostname: '', nodeSelector: {}, automountServiceAccountToken: false }),
    );
    const spec = made.body['spec'] as Json;
    assert.deepEqual(
      ['hostNetwork', 'hostname', 'nodeSelector', 'automountServiceAccountToken'].map((f) => spec[f]),
      [undefined, undefined, undefined, false],
    );
    assert.deepEqual(dig(spec, 'securityContext'), {});
    assert.deepEqual(dig(spec, 'containers', 0, 'resources'), {});
    const service = {
      metadata: { name: 'zero' },
      spec: { clusterIP: 'None', ports: [{ port: 1, nodePort: 0 }], selector: {} },
    };
    const port = dig((await s.api.post(`${s.path}/services`, service)).body, 'spec');
    assert.deepEqual([dig(port, 'selector'), dig(port, 'ports', 0, 'nodePort')], [undefined, undefined]);
  });

  it('refuses pods that make no sense, and says where', async () => {
    const empty = await s.api.post(`${s.path}/pods`, { metadata: { name: 'e' }, spec: { containers: [] } });
    assert.equal(empty.status, 422);
    assert.match(String(empty.body['message']), /^Pod "e" is invalid: spec\.containers: Required value/);
    const account = await s.api.post(`${s.path}/pods`, podBody('sa', { serviceAccountName: 'none' }));
    assert.equal(account.status, 403);
    assert.equal(
      account.body['message'],
      'pods "sa" is forbidden: error looking up service account contract/none: serviceaccount "none" not found',
    );
    const strict = await s.api.post(`${s.path}/pods?fieldValidation=Strict`, podBody('strict', { nonsense: true }));
    assert.equal(strict.status, 400);
    assert.match(
      String(strict.body['message']),
      /^Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec\.nonsense"$/,
    );
    const change = await s.api.merge(`${s.path}/pods/defaults`, { spec: { restartPolicy: 'Never' } });
    assert.equal(change.status, 422);
    assert.match(String(change.body['message']), /spec: Forbidden: pod updates may not change fields other than/);
  });

  it('binds once and counts spec changes', async () => {
    const bind = (node: string): Promise<{ status: number; body: Json }> =>
      s.api.post(`${s.path}/pods/defaults/binding`, {
        metadata: { name: 'defaults' },
        target: { kind: 'Node', name: node },
      });
    assert.equal((await bind('n1')).status, 201);
    const bound = await s.api.get(`${s.path}/pods/defaults`);
    assert.equal(dig(bound.body, 'spec', 'nodeName'), 'n1');
    assert.equal(dig(bound.body, 'metadata', 'generation'), 1);
    assert.equal(dig(bound.body, 'status', 'conditions', 0, 'type'), 'PodScheduled');
    const twice = await bind('n2');
    assert.equal(twice.status, 409);
    assert.match(String(twice.body['message']), /pod defaults is already assigned to node "n1"/);
    const image = await s.api.strategic(`${s.path}/pods/defaults`, {
      spec: { containers: [{ name: 'web', image: 'localhost/busybox:2' }] },
    });
    assert.equal(dig(image.body, 'metadata', 'generation'), 2);
  });
  resizeContract(s);
}
