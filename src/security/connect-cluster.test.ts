import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { connectCluster } from './connect-cluster.ts';

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
