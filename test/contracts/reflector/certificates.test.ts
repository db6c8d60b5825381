// A node joins with nothing but a bootstrap credential, on the embedded API server with its signer: it gets its client
// and serving certificates and uses them.
// runs: gate
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { X509Certificate } from 'node:crypto';
import { startApiServer, type RunningApiServer } from '../../../src/devcluster/start-api-server.ts';
import { connectApi, type ApiConnection } from '../../../src/kube/connect.ts';
import type { Credentials } from '../../../src/kube/credentials.ts';
import type { ClusterAccess } from '../../../src/kube/kubeconfig.ts';
import { NODES } from '../../../src/kube/resources.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { isFault } from '../../../src/lib/errors.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { subjectOf } from '../../../src/lib/x509/certificate.ts';
import { openClientIdentity } from '../../../src/security/client-identity.ts';
import { openServing } from '../../../src/security/serving-source.ts';
import { until, untilSeen } from '../../harness/until.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const clock = systemClock;
const log = silentLogger;
const stop = new AbortController();
const { signal } = stop;
const connections: ApiConnection[] = [];
let dir = '';
let server: RunningApiServer;
before(async () => {
  dir = temporaryFolder('join-');
  server = await startApiServer({ dir: join(dir, 'cluster') });
});
after(async () => {
  stop.abort();
  for (const { transport } of connections) transport.resetConnections();
  await server.stop();
});

const connect = (access: ClusterAccess, credentials?: Credentials): ApiConnection => {
  const options = { version: 'v', architecture: 'a', qps: 50, burst: 100, eventQps: 50, eventBurst: 100 };
  const deps = { clock, log, ...(credentials === undefined ? {} : { credentials }) };
  const api = connectApi(deps, access, { ...options, leaseDurationSeconds: 40, statusUpdateMs: 10_000 });
  connections.push(api);
  return api;
};

it('joins by bootstrap, serves with a signed certificate, and both are on disk', async () => {
  const paths = {
    kubeconfig: join(dir, 'kubeconfig'),
    bootstrapKubeconfig: join(dir, 'bootstrap'),
    certDir: join(dir, 'pki'),
  };
  const groups = ['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token'];
  await writeFile(paths.bootstrapKubeconfig, server.kubeconfig('system:bootstrap:abcdef', groups));
  const { access, credentials, manager } = await openClientIdentity(
    { clock, log, connect: (where, who) => connect(where, who).main },
    { ...paths, nodeName: 'n1', rotate: true },
    signal,
  );
  assert.ok(manager !== undefined);
  const { main } = connect(access, credentials);
  await assert.rejects(main.list(NODES, {}, signal), (err) => isFault(err, 'denied'), 'nobody yet');
  void manager.run(signal);
  await untilSeen(
    'client certificate',
    () => manager.valid,
    (seen) => seen !== undefined,
  );
  await main.create(NODES, {}, { metadata: { name: 'n1' } }, signal);
  const path = join(paths.certDir, 'kubelet-client-current.pem');
  await until('it is stored', () => existsSync(path));
  const pem = await readFile(path, 'utf8');
  assert.deepEqual(subjectOf(new X509Certificate(pem)), {
    commonName: 'system:node:n1',
    organizations: ['system:nodes'],
  });

  const shown: string[] = [];
  const serving = await openServing(
    {
      clock,
      log,
      client: () => main,
      addresses: () => [
        { type: 'InternalIP', address: '127.0.0.1' },
        { type: 'Hostname', address: 'n1' },
      ],
      onChange: () => shown.push(serving.current()?.cert ?? ''),
    },
    {
      certFile: '',
      keyFile: '',
      bootstrap: true,
      allowDnsOnly: false,
      reload: true,
      certDir: paths.certDir,
      nodeName: 'n1',
    },
  );
  assert.equal(serving.current(), undefined);
  for (const part of serving.parts) void part.run(signal);
  await untilSeen(
    'serving certificate',
    () => shown,
    (seen) => seen.length > 0,
  );
  await until('it is stored', () => existsSync(join(paths.certDir, 'kubelet-server-current.pem')));
  const leaf = new X509Certificate(shown[0] ?? '');
  assert.equal(leaf.checkIP('127.0.0.1'), '127.0.0.1');
  assert.match(leaf.subjectAltName ?? '', /DNS:n1/);
});
