// The way to the real control plane, walked with stand-ins for its programs: what is started with which flags, what the
// harness adds to a bare API server, what is said when something is missing.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { KubeObject } from '../../src/core/meta.ts';
import { CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, SIGNING_REQUESTS, type Resource } from '../../src/kube/resources.ts';
import { createSigningRequest } from '../../src/lib/x509/csr.ts';
import { newKeyPair } from '../../src/lib/x509/keys.ts';
import { connectClient } from './connect-client.ts';
import { until } from './until.ts';
import { findAssets } from './real-assets.ts';
import { startRealApiServer } from './real-api-server.ts';
import { temporaryFolder } from './temporary-folder.ts';

const never = new AbortController().signal;
const NAMESPACES: Resource<KubeObject> = { base: '/api/v1', plural: 'namespaces' };
const root = temporaryFolder('kts-real-');

function assetsWith(name: string, apiServer: string): string {
  const folder = join(root, name);
  mkdirSync(folder);
  writeFileSync(join(folder, 'etcd'), '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
  writeFileSync(join(folder, 'kube-apiserver'), `#!/bin/sh\n${apiServer}\n`, { mode: 0o755 });
  return folder;
}

const FAKE = `exec ${process.execPath} --disable-warning=ExperimentalWarning ${join(import.meta.dirname, 'fake-kube-apiserver.ts')} "$@"`;

describe('the real API server, by stand-ins', () => {
  it('furnishes namespaces, signs for nodes, and comes back with everything on the same port', async () => {
    const dir = join(root, 'cluster');
    const server = await startRealApiServer(dir, findAssets(assetsWith('fake', FAKE)));
    try {
      assert.equal(server.hasControllers, false);
      const client = await connectClient(server.adminKubeconfigPath);
      await client.create(NAMESPACES, {}, { metadata: { name: 'fresh' } }, never);
      const where = { namespace: 'fresh' };
      await until('the service account is there', () =>
        client.get(SERVICE_ACCOUNTS, { ...where, name: 'default' }, never).then(() => true),
      );
      const ca = await until('the CA is there', () =>
        client.get(CONFIG_MAPS, { ...where, name: 'kube-root-ca.crt' }, never),
      );
      assert.equal(ca.data?.['ca.crt'], server.caPem);

      writeFileSync(join(dir, 'node.kubeconfig'), server.nodeKubeconfig('n1'));
      const node = await connectClient(join(dir, 'node.kubeconfig'));
      const subject = { commonName: 'system:node:n1', organizations: ['system:nodes'] };
      const request = Buffer.from(createSigningRequest({ subject }, newKeyPair())).toString('base64');
      const usages = ['digital signature', 'client auth'];
      const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
      const body = { metadata: { generateName: 'csr-' }, spec: { request, signerName, usages } };
      const csr = await node.create(SIGNING_REQUESTS, {}, body, never);
      const signed = await until('it is signed', async () => {
        const { status } = await client.get(SIGNING_REQUESTS, { name: csr.metadata.name }, never);
        return status?.certificate;
      });
      assert.match(Buffer.from(signed, 'base64').toString(), /BEGIN CERTIFICATE/);
      await assert.rejects(node.get(SECRETS, { namespace: 'fresh', name: 'none' }, never));

      await server.stop();
      await assert.rejects(client.get(NAMESPACES, { name: 'fresh' }, never));
      await server.start();
      assert.equal((await client.get(NAMESPACES, { name: 'fresh' }, never)).metadata.name, 'fresh');
      const served = await server.served();
      assert.ok(served.some((r) => r.user === 'system:node:n1' && r.code === 403 && r.url.includes('/secrets/none')));
    } finally {
      await server.stop();
    }
  });

  it('says which program ended, and with which words', async () => {
    const folder = assetsWith('broken', 'echo "unknown flag: --audit-log-path" >&2; exit 1');
    await assert.rejects(
      startRealApiServer(join(root, 'broken-cluster'), findAssets(folder)),
      /kube-apiserver ended \(1\): unknown flag: --audit-log-path/,
    );
    const log = readFileSync(join(root, 'broken-cluster', 'kube-apiserver.log'), 'utf8');
    assert.match(log, /unknown flag/);
  });
});
