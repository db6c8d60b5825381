import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { NODES } from '../kube/resources.ts';
import { isFault } from '../lib/errors.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { selfSignedAuthority } from '../lib/x509/certificate.ts';
import { newKeyPair } from '../lib/x509/keys.ts';
import { budgetOf, connectCluster } from './connect-cluster.ts';
import { newSelfSigned } from './self-signed-serving.ts';

const dir = mkdtempSync(join(tmpdir(), 'connect-'));
after(() => rmSync(dir, { recursive: true }));

const KUBECONFIG = `
apiVersion: v1
kind: Config
current-context: c
clusters: [{ name: c, cluster: { server: 'http://127.0.0.1:1' } }]
users: [{ name: u, user: { token: t } }]
contexts: [{ name: c, context: { cluster: c, user: u } }]
`;

for (const rotateCertificates of [true, false])
  it(`the client certificate is ${rotateCertificates ? '' : 'not '}among the metrics where it is ${rotateCertificates ? '' : 'not '}rotated`, async () => {
    const kubeconfig = join(dir, 'kubeconfig');
    writeFileSync(kubeconfig, KUBECONFIG);
    const flags = { kubeconfig, bootstrapKubeconfig: '', certDir: join(dir, 'pki') };
    const env = environmentOf({ flags, config: { rotateCertificates } });
    const { parts } = await connectCluster(env, () => () => undefined, new AbortController().signal);
    assert.equal(parts.length, rotateCertificates ? 1 : 0);
    const shown = env.registry.render();
    assert.equal(/^kubelet_certificate_manager_client_ttl_seconds \+Inf$/m.test(shown), rotateCertificates);
    assert.equal(/^kubelet_certificate_manager_client_expiration_renew_errors 0$/m.test(shown), rotateCertificates);
  });

it('budgets of 0 are those of the client that upstream uses', () => {
  assert.deepEqual(budgetOf(50, 100), [50, 100]);
  assert.deepEqual(budgetOf(0, 0), [5, 10]);
  assert.deepEqual(budgetOf(-1, 0), [-1, 10]);
});

for (const isOn of [true, false])
  it(`another authority in its file is ${isOn ? '' : 'not '}followed with the gate ${isOn ? 'on' : 'off'}`, async () => {
    const now = Date.now();
    const { cert, key } = await newSelfSigned('127.0.0.1', now);
    const server = https.createServer({ cert, key }, (_request, response) => response.end('{"metadata":{"name":"n"}}'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const caFile = join(dir, 'ca.crt');
    writeFileSync(
      caFile,
      selfSignedAuthority({ commonName: 'old' }, newKeyPair(), { notBeforeMs: 0, notAfterMs: now }),
    );
    const kubeconfig = join(dir, 'kubeconfig-tls');
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    writeFileSync(kubeconfig, KUBECONFIG.replace("'http://127.0.0.1:1'", `'${url}', certificate-authority: ca.crt`));
    const flags = { kubeconfig, bootstrapKubeconfig: '', certDir: join(dir, 'pki') };
    const clock = new ManualClock();
    const env = { ...environmentOf({ flags, gates: { ClientsAllowCARotation: isOn } }), clock };
    const { signal } = new AbortController();
    const { api } = await connectCluster(env, () => () => undefined, signal);
    try {
      const ask = (): Promise<unknown> => api.main.get(NODES, { name: 'n' }, signal);
      await assert.rejects(ask(), (err) => isFault(err, 'unavailable'));
      writeFileSync(caFile, cert);
      await clock.advance(60_000);
      if (isOn) await ask();
      else await assert.rejects(ask(), (err) => isFault(err, 'unavailable'));
    } finally {
      api.transport.resetConnections();
      server.closeAllConnections();
      server.close();
    }
  });
