// Identities and rights: a node's kubelet, tokens, signing requests, reviews.
import { strict as assert } from 'node:assert';
import { it } from 'node:test';
import { createSigningRequest } from '../../../src/lib/x509/csr.ts';
import { newKeyPair } from '../../../src/lib/x509/keys.ts';
import { dig } from './client.ts';
import { podBody, type Scene } from './scene.ts';
import { untilSeen } from '../../harness/until.ts';

export function accessContract(s: Scene): void {
  it('lets a kubelet have its own node, lease and pods, and nobody else’s', async () => {
    const kubelet = s.server.as('system:node:n1', ['system:nodes']);
    const node = await kubelet.post('/api/v1/nodes', {
      metadata: { name: 'n1', labels: { 'kubernetes.io/os': 'linux' } },
      status: { capacity: { cpu: '2' } },
    });
    assert.equal(node.status, 201);
    assert.equal(dig(node.body, 'status', 'capacity', 'cpu'), '2');
    assert.equal((await kubelet.post('/api/v1/nodes', { metadata: { name: 'n2' } })).status, 403);
    assert.equal((await kubelet.get('/api/v1/nodes/n1')).status, 200);
    assert.equal((await kubelet.get('/api/v1/nodes')).status, 403);
    assert.equal((await kubelet.get('/api/v1/nodes?fieldSelector=metadata.name%3Dn1')).status, 200);
    const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    assert.equal(
      (await kubelet.post(leases, { metadata: { name: 'n1' }, spec: { holderIdentity: 'n1' } })).status,
      201,
    );
    assert.equal((await kubelet.post(leases, { metadata: { name: 'n2' }, spec: {} })).status, 403);
    assert.equal((await kubelet.get('/api/v1/pods?fieldSelector=spec.nodeName%3Dn1')).status, 200);
    assert.equal((await kubelet.get('/api/v1/pods')).status, 403);
  });

  it('lets a kubelet read what its pods refer to, patch their status, delete them', async () => {
    const kubelet = s.server.as('system:node:n1', ['system:nodes']);
    const other = s.server.as('system:node:n2', ['system:nodes']);
    await s.api.post(`${s.path}/secrets`, { metadata: { name: 'used' } });
    await s.api.post(`${s.path}/secrets`, { metadata: { name: 'unused' } });
    const token = { serviceAccountToken: { path: 't', audience: 'x', expirationSeconds: 3607 } };
    const volumes = [
      { name: 's', secret: { secretName: 'used' } },
      { name: 't', projected: { sources: [token] } },
    ];
    await s.api.post(`${s.path}/pods`, podBody('owned', { nodeName: 'n1', volumes }));
    await untilSeen(
      'the node may read it',
      async () => (await kubelet.get(`${s.path}/secrets/used`)).status,
      (seen) => seen === 200,
    );
    assert.equal((await kubelet.get(`${s.path}/secrets?fieldSelector=metadata.name%3Dused`)).status, 200);
    assert.equal((await kubelet.get(`${s.path}/secrets/unused`)).status, 403);
    assert.equal((await kubelet.get(`${s.path}/secrets`)).status, 403);
    assert.equal((await other.get(`${s.path}/secrets/used`)).status, 403);
    assert.equal(
      (await kubelet.strategic(`${s.path}/pods/owned/status`, { status: { phase: 'Running' } })).status,
      200,
    );
    assert.equal((await other.strategic(`${s.path}/pods/owned/status`, { status: { phase: 'Failed' } })).status, 403);
    assert.equal((await kubelet.merge(`${s.path}/pods/owned`, { metadata: { labels: { a: 'b' } } })).status, 403);
    assert.equal((await kubelet.post(`${s.path}/pods`, podBody('mine', { nodeName: 'n1' }))).status, 403);
    assert.equal((await other.delete(`${s.path}/pods/owned`, { gracePeriodSeconds: 0 })).status, 403);
    const uid = dig((await s.api.get(`${s.path}/pods/owned`)).body, 'metadata', 'uid');
    const ask = (...audiences: string[]): ReturnType<typeof kubelet.post> =>
      kubelet.post(`${s.path}/serviceaccounts/default/token`, {
        spec: {
          audiences,
          expirationSeconds: 3607,
          boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'owned', uid },
        },
      });
    const given = await ask('x');
    assert.equal(given.status, 201, JSON.stringify(given.body));
    const another = await ask('y');
    assert.equal(another.status, 403);
    assert.match(
      String(another.body['message']),
      /audience "y" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience/,
    );
    assert.match(String((await ask('x', 'y')).body['message']), /node may only request 0 or 1 audiences/);
    const loose = await kubelet.post(`${s.path}/serviceaccounts/default/token`, { spec: { expirationSeconds: 3607 } });
    assert.equal(loose.status, 403);
    assert.match(String(loose.body['message']), /node requested token not bound to a pod/);
    assert.equal((await kubelet.delete(`${s.path}/pods/owned`, { gracePeriodSeconds: 0 })).status, 200);
  });

  it('takes mirror pods from the node they are for', async () => {
    const kubelet = s.server.as('system:node:n1', ['system:nodes']);
    const uid = dig((await s.api.get('/api/v1/nodes/n1')).body, 'metadata', 'uid');
    const meta = {
      annotations: { 'kubernetes.io/config.mirror': 'abc', 'kubernetes.io/config.source': 'file' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid, controller: true }],
    };
    const spec = { nodeName: 'n1', tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] };
    const mirror = await kubelet.post(`${s.path}/pods`, podBody('static-n1', spec, meta));
    assert.equal(mirror.status, 201, JSON.stringify(mirror.body));
    assert.equal(dig(mirror.body, 'spec', 'volumes'), undefined);
    assert.equal(dig(mirror.body, 'spec', 'serviceAccountName'), undefined);
    assert.equal(dig(mirror.body, 'metadata', 'generation'), 1);
    assert.equal((dig(mirror.body, 'spec', 'tolerations') as unknown[]).length, 1);
    const foreign = await kubelet.post(`${s.path}/pods`, podBody('static-n2', { ...spec, nodeName: 'n2' }, meta));
    assert.equal(foreign.status, 403);
  });

  it('issues tokens that it then believes, until their pod is gone', async () => {
    await s.api.post(`${s.path}/pods`, podBody('tok', { nodeName: 'n1' }));
    const uid = dig((await s.api.get(`${s.path}/pods/tok`)).body, 'metadata', 'uid');
    const made = await s.api.post(`${s.path}/serviceaccounts/default/token`, {
      spec: { expirationSeconds: 3607, boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'tok', uid } },
    });
    const token = String(dig(made.body, 'status', 'token'));
    const review = (): Promise<{ body: unknown }> =>
      s.api.post('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token } });
    const good = (await review()).body;
    assert.equal(dig(good, 'status', 'authenticated'), true);
    assert.equal(dig(good, 'status', 'user', 'username'), 'system:serviceaccount:contract:default');
    assert.deepEqual(dig(good, 'status', 'user', 'extra', 'authentication.kubernetes.io/pod-name'), ['tok']);
    await s.api.delete(`${s.path}/pods/tok`, { gracePeriodSeconds: 0 });
    await untilSeen(
      'the token is refused',
      async () => dig((await review()).body, 'status', 'authenticated'),
      (seen) => seen !== true,
    );
    const short = await s.api.post(`${s.path}/serviceaccounts/default/token`, { spec: { expirationSeconds: 60 } });
    assert.equal(short.status, 422);
    assert.match(String(short.body['message']), /may not specify a duration less than 10 minutes/);
  });

  it('answers who may do what', async () => {
    const ask = (user: string, groups: string[], verb: string, resource: string): Promise<unknown> =>
      s.api
        .post('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
          spec: { user, groups, resourceAttributes: { verb, resource, namespace: s.ns } },
        })
        .then((r) => dig(r.body, 'status', 'allowed'));
    assert.equal(await ask('admin', ['system:masters'], 'delete', 'pods'), true);
    assert.equal(await ask('nobody', [], 'get', 'pods'), false);
    await s.api.post(`/apis/rbac.authorization.k8s.io/v1/namespaces/${s.ns}/roles`, {
      metadata: { name: 'r' },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
    });
    await s.api.post(`/apis/rbac.authorization.k8s.io/v1/namespaces/${s.ns}/rolebindings`, {
      metadata: { name: 'r' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jo' }],
    });
    await untilSeen(
      'the binding counts',
      () => ask('jo', [], 'get', 'pods'),
      (seen) => seen === true,
    );
    assert.equal(await ask('jo', [], 'list', 'pods'), false);
    const jo = s.server.as('jo', []);
    assert.equal((await jo.get(`${s.path}/pods/none`)).status, 404);
    const refused = await jo.get(`${s.path}/secrets`);
    assert.equal(refused.status, 403);
    assert.equal(
      refused.body['message'],
      'secrets is forbidden: User "jo" cannot list resource "secrets" in API group "" in the namespace "contract"',
    );
  });

  it('records who asked for a certificate', async () => {
    const keys = newKeyPair();
    const request = createSigningRequest(
      { subject: { commonName: 'system:node:n1', organizations: ['system:nodes'] } },
      keys,
    );
    const kubelet = s.server.as('system:node:n1', ['system:nodes']);
    const made = await kubelet.post('/apis/certificates.k8s.io/v1/certificatesigningrequests', {
      metadata: { generateName: 'csr-' },
      spec: {
        request: Buffer.from(request).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['digital signature', 'client auth'],
        username: 'root',
      },
    });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    assert.equal(dig(made.body, 'spec', 'username'), 'system:node:n1');
  });
}
