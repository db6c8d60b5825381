// The API servers the contract runs on: ours, and the real one where its binaries are (KUBEBUILDER_ASSETS).
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubeconfig } from '../../../src/devcluster/api/pki/kubeconfig.ts';
import { openPki } from '../../../src/devcluster/api/pki/pki.ts';
import { startApiServer } from '../../../src/devcluster/start-api-server.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ApiClient } from './client.ts';

export type TestServer = {
  readonly admin: ApiClient;
  /** A client with the identity of a user. */
  as(user: string, groups: readonly string[]): ApiClient;
  stop(): Promise<void>;
};

export async function openEmbedded(): Promise<TestServer> {
  const dir = await mkdtemp(join(tmpdir(), 'kts-api-'));
  const running = await startApiServer({ dir, controllers: ['garbage-collector', 'namespaces', 'signing-requests'] });
  const clients: ApiClient[] = [];
  const as = (user: string, groups: readonly string[]): ApiClient => {
    const client = ApiClient.fromKubeconfig(running.kubeconfig(user, groups));
    clients.push(client);
    return client;
  };
  return {
    admin: as('admin', ['system:masters']),
    as,
    async stop() {
      for (const client of clients) client.close();
      await running.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const assets = process.env['KUBEBUILDER_ASSETS'] ?? '';
export const hasRealServer = (): boolean =>
  assets !== '' && existsSync(join(assets, 'kube-apiserver')) && existsSync(join(assets, 'etcd'));

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

export async function openReal(): Promise<TestServer> {
  const dir = await mkdtemp(join(tmpdir(), 'kts-real-'));
  const pki = await openPki(systemClock, {
    directory: join(dir, 'pki'),
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1'],
  });
  const [client, peer, port] = await Promise.all([freePort(), freePort(), freePort()]);
  const children: ChildProcess[] = [];
  const run = (name: string, args: string[]): void => {
    children.push(spawn(join(assets, name), args, { stdio: 'ignore' }));
  };
  await writeFile(join(dir, 'sa.pub'), pki.tokenPublicKey.export({ type: 'spki', format: 'pem' }));
  run('etcd', [
    `--data-dir=${dir}/etcd`,
    `--listen-client-urls=http://127.0.0.1:${client}`,
    `--advertise-client-urls=http://127.0.0.1:${client}`,
    `--listen-peer-urls=http://127.0.0.1:${peer}`,
    '--unsafe-no-fsync=true',
  ]);
  run('kube-apiserver', [
    `--etcd-servers=http://127.0.0.1:${client}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--tls-cert-file=${dir}/pki/apiserver.crt`,
    `--tls-private-key-file=${dir}/pki/apiserver.key`,
    `--client-ca-file=${dir}/pki/ca.crt`,
    `--service-account-key-file=${dir}/sa.pub`,
    `--service-account-signing-key-file=${dir}/pki/sa.key`,
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--service-cluster-ip-range=10.96.0.0/16',
    '--allow-privileged=true',
  ]);
  const clients: ApiClient[] = [];
  const as = (user: string, groups: readonly string[]): ApiClient => {
    const credential = pki.issueClient({ commonName: user, organizations: groups });
    const made = ApiClient.fromKubeconfig(
      kubeconfig(`https://127.0.0.1:${port}`, pki.caPem, { name: user, credential }),
    );
    clients.push(made);
    return made;
  };
  const admin = as('admin', ['system:masters']);
  await ready(admin);
  return {
    admin,
    as,
    async stop() {
      for (const made of clients) made.close();
      for (const child of children.toReversed()) child.kill('SIGKILL');
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Answers, and has what the contract counts on; no controller makes service accounts beside a bare server. */
async function ready(admin: ApiClient): Promise<void> {
  for (let i = 0; i < 300; i++) {
    const reply = await admin.get('/readyz').catch(() => undefined);
    if (reply?.status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('kube-apiserver did not become ready');
}
