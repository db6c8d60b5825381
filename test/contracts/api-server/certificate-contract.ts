// Certificates for pods: trust bundles everybody on a node may read, and requests a kubelet makes for its own pods.
import { strict as assert } from 'node:assert';
import { it } from 'node:test';
import { createSigningRequest } from '../../../src/lib/x509/csr.ts';
import { readPem } from '../../../src/lib/x509/der.ts';
import { newKeyPair, type KeyPair } from '../../../src/lib/x509/keys.ts';
import { newAuthority } from '../../harness/authorities.ts';
import { dig, type ApiClient, type Json } from './client.ts';
import { podBody, type Scene } from './scene.ts';

const BASE = '/apis/certificates.k8s.io/v1beta1';
const BUNDLES = `${BASE}/clustertrustbundles`;
const SIGNER = 'example.com/mesh';

export function certificateContract(s: Scene): void {
  trustBundles(s);
  podRequests(s);
}

function trustBundles(s: Scene): void {
  it('keeps trust bundles under names that say whose they are', async () => {
    const trustBundle = newAuthority('one').certificatePem;
    const create = (name: string, spec: Json, client = s.api): ReturnType<ApiClient['post']> =>
      client.post(BUNDLES, { metadata: { name }, spec: { trustBundle, ...spec } });
    assert.equal((await create('plain', {})).status, 201);
    assert.equal((await create('example.com:mesh:a', { signerName: SIGNER })).status, 201);
    for (const [name, spec, why] of [
      ['with:colon', {}, /must not have ":" in its name/],
      ['a', { signerName: SIGNER }, /must be named with prefix example.com:mesh:/],
      ['empty', { trustBundle: '' }, /at least one trust anchor must be provided/],
      ['twice', { trustBundle: trustBundle + trustBundle }, /duplicate trust anchor/],
    ] as const) {
      const refused = await create(name, spec);
      assert.equal(refused.status, 422, name);
      assert.match(String(refused.body['message']), why);
    }
    const changed = await s.api.merge(`${BUNDLES}/example.com:mesh:a`, { spec: { signerName: 'example.com/other' } });
    assert.equal(changed.status, 422);
    const kubelet = s.server.as('system:node:n1', ['system:nodes']);
    const mine = await kubelet.get(`${BUNDLES}?fieldSelector=spec.signerName%3Dexample.com%2Fmesh`);
    assert.deepEqual(
      (mine.body['items'] as Json[]).map((o) => dig(o, 'metadata', 'name')),
      ['example.com:mesh:a'],
    );
    assert.equal((await create('by-node', {}, kubelet)).status, 403);
    const groups = (await s.api.get('/apis')).body['groups'] as Json[];
    const offered = groups.filter((g) => g['name'] === 'certificates.k8s.io');
    assert.equal(offered.length, 1);
    assert.equal(dig(offered[0], 'preferredVersion', 'version'), 'v1');
  });
}

const stubOf = (keys: KeyPair): string =>
  (
    readPem(createSigningRequest({ subject: { commonName: '' } }, keys), 'CERTIFICATE REQUEST') ?? Buffer.alloc(0)
  ).toString('base64');

function podRequests(s: Scene): void {
  it('takes certificate requests of a kubelet for its own pods, and answers from the signer', async () => {
    const kubelet = s.server.as('system:node:n1', ['system:nodes']);
    const path = `${BASE}/namespaces/${s.ns}/podcertificaterequests`;
    const uidOf = async (at: string): Promise<unknown> => dig((await s.api.get(at)).body, 'metadata', 'uid');
    await s.api.post(`${s.path}/pods`, podBody('cert', { nodeName: 'n1' }));
    const spec = {
      signerName: SIGNER,
      podName: 'cert',
      podUID: await uidOf(`${s.path}/pods/cert`),
      serviceAccountName: 'default',
      serviceAccountUID: await uidOf(`${s.path}/serviceaccounts/default`),
      nodeName: 'n1',
      nodeUID: await uidOf('/api/v1/nodes/n1'),
      stubPKCS10Request: stubOf(newKeyPair()),
    };
    const ask = (more: Json = {}, client = kubelet): ReturnType<ApiClient['post']> =>
      client.post(path, { metadata: { generateName: 'req-' }, spec: { ...spec, ...more } });
    const made = await ask();
    assert.equal(made.status, 201, JSON.stringify(made.body));
    assert.equal(dig(made.body, 'spec', 'maxExpirationSeconds'), 86_400);
    const name = String(dig(made.body, 'metadata', 'name'));
    assert.equal((await ask({}, s.server.as('system:node:n2', ['system:nodes']))).status, 403);
    for (const lie of [{ nodeName: 'n2' }, { podUID: 'x' }, { serviceAccountName: 'other' }, { nodeUID: 'x' }])
      assert.ok((await ask(lie)).status >= 400, JSON.stringify(lie));
    assert.equal((await ask({ maxExpirationSeconds: 60 })).status, 422);
    assert.equal((await ask({ stubPKCS10Request: stubOf(newKeyPair('rsa')) })).status, 422, '2048 bits are too few');
    assert.equal((await kubelet.get(path)).status, 403);
    assert.equal((await kubelet.get(`${path}?fieldSelector=spec.nodeName%3Dn1`)).status, 200);
    assert.equal((await kubelet.get(`${path}/${name}`)).status, 200);
    const condition = {
      type: 'Denied',
      status: 'True',
      reason: 'No',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const denied = { status: { conditions: [condition] } };
    assert.equal((await kubelet.merge(`${path}/${name}/status`, denied)).status, 403);
    assert.equal((await s.api.merge(`${path}/${name}/status`, denied)).status, 200);
    assert.equal((await s.api.merge(`${path}/${name}`, { spec: { podName: 'other' } })).status, 422);
  });
}
