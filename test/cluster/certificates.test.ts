// How a node gets its identity and keeps it: TLS bootstrap, the files it leaves, serving certificates from the cluster,
// coming back after the certificate ran out, rotation while everything goes on.
// runs: gate, at rest
// shows: TLS bootstrap, certificate rotation, authentication and authorization on 10250
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { existsSync, lstatSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { connect } from 'node:tls';
import { parse } from 'yaml';
import { kubeconfig } from '../../src/devcluster/api/pki/kubeconfig.ts';
import { SECRETS, SIGNING_REQUESTS, type CertificateSigningRequest } from '../../src/kube/resources.ts';
import { subjectOf } from '../../src/lib/x509/certificate.ts';
import type { ServedRequest } from '../harness/api-server.ts';
import { NODE_NAME, startNode, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';
import { nodeReady, readLease } from './node-view.ts';
import { never, Scene } from './scene.ts';

const TOKEN = { id: 'abcdef', secret: '0123456789abcdef' };
const CLIENT = 'kubernetes.io/kube-apiserver-client-kubelet';
const SERVING = 'kubernetes.io/kubelet-serving';
const USER = `system:node:${NODE_NAME}`;

type Csr = CertificateSigningRequest & { readonly spec: { readonly username?: string } };

let node: TestNode;
const pki = (file: string): string => join(node.dir, 'pki', file);
const current = (name: 'client' | 'server'): X509Certificate =>
  new X509Certificate(readFileSync(pki(`kubelet-${name}-current.pem`), 'utf8'));

const requests = async (signer: string): Promise<readonly Csr[]> =>
  ((await node.client.list(SIGNING_REQUESTS, {}, never)).items as readonly Csr[]).filter(
    (csr) => csr.spec.signerName === signer,
  );

/** The one certificate whose file `current` points to. */
function checkFiles(name: 'client' | 'server'): void {
  const link = pki(`kubelet-${name}-current.pem`);
  assert.ok(lstatSync(link).isSymbolicLink());
  const target = readlinkSync(link);
  assert.match(target, new RegExp(`^${pki('kubelet')}-${name}-\\d{4}(-\\d\\d){5}\\.pem$`));
  assert.equal(lstatSync(target).mode & 0o777, 0o600);
  assert.match(readFileSync(target, 'utf8'), /^-----BEGIN CERTIFICATE-----[^]*-----BEGIN EC PRIVATE KEY-----/);
  assert.equal(existsSync(pki(`kubelet-${name}-updated.pem`)), false);
}

/** Puts another client certificate in the kubelet's place, as if the time had passed. */
function plant(notBeforeMs: number, notAfterMs: number): void {
  const pem = node.api.issueClient(USER, ['system:nodes'], { notBeforeMs, notAfterMs });
  const file = pki('kubelet-client-2020-01-01-00-00-00.pem');
  writeFileSync(file, pem, { mode: 0o600 });
  rmSync(pki('kubelet-client-current.pem'));
  symlinkSync(file, pki('kubelet-client-current.pem'));
}

/** With one that is so old and has so long to live, from when the kubelet starts. */
async function restartWith(ageMs: number, leftMs: number): Promise<X509Certificate> {
  await node.kubelet.kill('SIGTERM');
  const now = Date.now();
  plant(now - ageMs, now + leftMs);
  const planted = current('client');
  await node.kubelet.start(node.healthzPort);
  return planted;
}

const shownByServer = (): Promise<X509Certificate> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: node.port, rejectUnauthorized: false }, () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      if (certificate === undefined) reject(new Error('no certificate shown'));
      else resolve(certificate);
    });
    socket.once('error', reject);
  });

before(async () => {
  node = await startNode({
    config: 'rotateCertificates: true\nserverTLSBootstrap: true',
    identity: (api, dir) => {
      const token = `${TOKEN.id}.${TOKEN.secret}`;
      writeFileSync(join(dir, 'bootstrap.kubeconfig'), kubeconfig(api.url, api.caPem, { name: 'bootstrap', token }));
      return [
        '--bootstrap-kubeconfig',
        join(dir, 'bootstrap.kubeconfig'),
        '--kubeconfig',
        join(dir, 'made', 'kubeconfig'),
      ];
    },
    prepare: async ({ client }) => {
      const stringData = {
        'token-id': TOKEN.id,
        'token-secret': TOKEN.secret,
        'usage-bootstrap-authentication': 'true',
      };
      const metadata = { name: `bootstrap-token-${TOKEN.id}`, namespace: 'kube-system' };
      const secret = { metadata, type: 'bootstrap.kubernetes.io/token', stringData };
      await client.create(SECRETS, { namespace: 'kube-system' }, secret, never);
    },
  });
});

after(() => node?.stop());

describe('TLS bootstrap', () => {
  it('asks for a client certificate with the bootstrap token and joins with it', async () => {
    await nodeReady(node);
    const [csr, ...more] = await requests(CLIENT);
    assert.equal(more.length, 0);
    assert.equal(csr?.spec.username, `system:bootstrap:${TOKEN.id}`);
    assert.deepEqual(csr.spec.usages, ['digital signature', 'client auth']);
    assert.match(csr.metadata.name, /^csr-/);
    await until('it is stored', () => existsSync(pki('kubelet-client-current.pem')));
    const { commonName, organizations } = subjectOf(current('client'));
    assert.deepEqual([commonName, organizations], [USER, ['system:nodes']]);
    checkFiles('client');
  });

  it('writes a kubeconfig that points to the certificate', () => {
    const path = join(node.dir, 'made', 'kubeconfig');
    assert.equal(lstatSync(path).mode & 0o777, 0o600);
    const made = parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    assert.equal(made['current-context'], 'default-context');
    const pem = pki('kubelet-client-current.pem');
    assert.deepEqual(made['users'], [{ name: 'default-auth', user: { 'client-certificate': pem, 'client-key': pem } }]);
  });
});

describe('serving certificate', () => {
  it('is asked for with the name and addresses of the node, and shown on the port', async () => {
    const shown = await until('the port shows a certificate', shownByServer);
    const [csr] = await requests(SERVING);
    assert.equal(csr?.spec.username, USER);
    assert.deepEqual(csr.spec.usages, ['digital signature', 'server auth']);
    assert.ok(shown.verify(new X509Certificate(node.api.caPem).publicKey));
    assert.equal(subjectOf(shown).commonName, USER);
    const { status } = await nodeReady(node);
    const ip = status?.addresses?.find((a) => a.type === 'InternalIP')?.address ?? '';
    assert.equal(shown.checkIP(ip), ip);
    assert.equal(shown.checkHost(NODE_NAME), NODE_NAME);
    await until('it is stored', () => existsSync(pki('kubelet-server-current.pem')));
    checkFiles('server');
    assert.equal(shown.fingerprint256, current('server').fingerprint256);
  });
});

describe('later', () => {
  it('starts again with what it has', async () => {
    const had = [current('client').fingerprint256, current('server').fingerprint256];
    const asked = (await requests(CLIENT)).length + (await requests(SERVING)).length;
    await node.kubelet.kill('SIGTERM');
    await node.kubelet.start(node.healthzPort);
    const shown = await until('the port shows a certificate', shownByServer);
    assert.deepEqual([current('client').fingerprint256, shown.fingerprint256], had);
    assert.equal((await requests(CLIENT)).length + (await requests(SERVING)).length, asked);
  });

  it('gets back in by itself after sleeping past its certificate', async () => {
    const expired = await restartWith(7_200_000, -3_600_000);
    await untilSeen(
      'there is a new certificate',
      () => current('client').fingerprint256,
      (seen) => seen !== expired.fingerprint256,
    );
    const csr = (await requests(CLIENT)).find((c) => c.spec.username === `system:bootstrap:${TOKEN.id}`);
    assert.ok(csr !== undefined);
    const scene = await Scene.open(node, 'awake');
    await scene.pod('after-sleep', {});
    await scene.ready('after-sleep');
  });

  it('rotates while it works, with its own certificate, and goes on after the old one ran out', async () => {
    // Due between 70 and 90 % of its life: in 4 to 16 s from now.
    const old = await restartWith(38_000, 22_000);
    const scene = await Scene.open(node, 'rotating');
    await scene.pod('before', {});
    await scene.ready('before');
    await untilSeen(
      'there is a new certificate',
      () => current('client').fingerprint256,
      (seen) => seen !== old.fingerprint256,
    );
    assert.ok((await requests(CLIENT)).some((c) => c.spec.username === USER));
    checkFiles('client');
    const credential = `X509SHA256=${current('client').fingerprint256.replaceAll(':', '').toLowerCase()}`;
    const served = async (): Promise<readonly ServedRequest[]> =>
      (await node.api.served()).filter((r) => r.user === USER);
    await untilSeen('the watches are opened anew with it', served, (seen) =>
      seen.some((r) => r.url.includes('watch=true') && r.credential === credential),
    );
    await untilSeen(
      'the old one has run out',
      () => Date.now(),
      (seen) => seen > Date.parse(old.validTo) + 1000,
    );
    // A kubelet at rest may ask for nothing for ten seconds: there is work for it first.
    const before = (await served()).length;
    const renewed = (await readLease(node))?.spec?.renewTime;
    await scene.pod('behind', {});
    await scene.ready('behind');
    await untilSeen(
      'the lease is renewed',
      async () => (await readLease(node))?.spec?.renewTime,
      (seen) => seen !== renewed,
    );
    const late = (await served()).slice(before);
    assert.deepEqual(
      new Set(late.map((r) => r.credential)),
      new Set([credential]),
      'nothing goes over old connections',
    );
  });

  it('was never refused anything', async () => {
    assert.deepEqual(await node.refusals(), []);
  });
});
