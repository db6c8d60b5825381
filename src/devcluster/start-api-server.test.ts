import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ApiClient } from '../../test/contracts/api-server/client.ts';
import { startApiServer } from './start-api-server.ts';

/** Files that others could read, given the modes of the folders above them. */
async function readable(folder: string): Promise<string[]> {
  if (((await stat(folder)).mode & 0o077) === 0) return [];
  const found: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) found.push(...(await readable(path)));
    else if (((await stat(path)).mode & 0o077) !== 0) found.push(path);
  }
  return found;
}

for (const [name, prepare] of [
  ['a new folder', (): Promise<void> => Promise.resolve()],
  [
    'a folder that others could enter',
    async (dir: string): Promise<void> => {
      await mkdir(dir);
      await chmod(dir, 0o755);
    },
  ],
  [
    'a folder with a database that others could read',
    async (dir: string): Promise<void> => {
      await mkdir(dir);
      await writeFile(join(dir, 'cluster.db'), '', { mode: 0o644 });
      await chmod(join(dir, 'cluster.db'), 0o644);
    },
  ],
] as const)
  test(`other users can read nothing of a cluster in ${name}`, async () => {
    const parent = await mkdtemp(join(tmpdir(), 'modes-'));
    await chmod(parent, 0o755);
    const before = process.umask(0);
    const dir = join(parent, 'api');
    await prepare(dir);
    const running = await startApiServer({ dir, controllers: false });
    try {
      assert.deepEqual(await readable(parent), []);
      assert.equal((await stat(dir)).mode & 0o777, 0o700);
      for (const file of await readdir(dir))
        if (file.startsWith('cluster.db')) assert.equal((await stat(join(dir, file))).mode & 0o777, 0o600, file);
    } finally {
      process.umask(before);
      await running.stop();
      await rm(parent, { recursive: true });
    }
  });

test('what this cluster does not have is refused or warned of in a sentence', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'absent-'));
  const running = await startApiServer({ dir, controllers: false });
  try {
    const api = ApiClient.fromKubeconfig(await readFile(running.adminKubeconfigPath, 'utf8'));
    const rows = [
      ['/apis/networking.k8s.io/v1/namespaces/default/ingresses', /^no Ingress can be created: .*kubectl port-forward/],
      ['/apis/networking.k8s.io/v1/namespaces/default/networkpolicies', /nothing enforces network policies$/],
      ['/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers', /use "kubectl scale"$/],
      ['/apis/apiextensions.k8s.io/v1/customresourcedefinitions', /no custom resources$/],
    ] as const;
    for (const [path, why] of rows) {
      const refused = await api.post(path, { metadata: { name: 'x' } });
      assert.equal(refused.status, 405, path);
      assert.match(String(refused.body['message']), why);
      const protobuf = await api.request('POST', path, 'k8s\0', {
        'content-type': 'application/vnd.kubernetes.protobuf',
      });
      assert.equal(protobuf.status, 405, `${path} as protobuf`);
      assert.match(String(protobuf.body['message']), why);
      assert.deepEqual((await api.get(path)).body['items'], [], `${path} can be listed`);
      assert.equal((await api.get(`${path}/x`)).status, 404);
    }
    const made = await api.post('/apis/policy/v1/namespaces/default/poddisruptionbudgets', { metadata: { name: 'x' } });
    assert.equal(made.status, 201);
    assert.match(String(made.headers['warning']), /disruption budgets are stored, but evictions do not ask for them/);
  } finally {
    await running.stop();
    await rm(dir, { recursive: true });
  }
});

test('the proxy of a service leads to what is behind it', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'proxy-'));
  const backend = createServer((request, response) => response.end(`${request.method} ${request.url}`));
  backend.listen(0, '127.0.0.1');
  await once(backend, 'listening');
  const running = await startApiServer({ dir, controllers: false });
  try {
    const api = ApiClient.fromKubeconfig(await readFile(running.adminKubeconfigPath, 'utf8'));
    const path = '/api/v1/namespaces/default';
    await api.post(`${path}/services`, { metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } });
    const { port } = backend.address() as AddressInfo;
    const subsets = [{ addresses: [{ ip: '127.0.0.1' }], ports: [{ port }] }];
    await api.post(`${path}/endpoints`, { metadata: { name: 'web' }, subsets });
    assert.equal((await api.get(`${path}/services/web:80/proxy/a?b=c`)).text, 'GET /a?b=c');
    assert.equal((await api.post(`${path}/services/http:web:/proxy/`, {})).text, 'POST /');
    const refused = await api.get(`${path}/services/web:81/proxy/`);
    assert.equal(refused.status, 503);
    assert.equal(refused.body['message'], 'no service port 81 found for service "web"');
  } finally {
    await running.stop();
    backend.close();
    await rm(dir, { recursive: true });
  }
});

test('the service of the API has the usual address and leads to where the server listens for pods', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'service-'));
  const start = () => startApiServer({ dir, controllers: false, alsoListenOn: ['127.0.0.2'] });
  let running = await start();
  try {
    for (const round of ['new', 'started again on another port']) {
      const { store } = running.server.registry;
      const of = (storage: string) => store.get(storage, 'default/kubernetes')?.object as Record<string, unknown>;
      const ports = [{ name: 'https', port: running.port, protocol: 'TCP' }];
      const { clusterIP, ports: offered } = of('services')['spec'] as Record<string, unknown>;
      assert.equal(clusterIP, '10.96.0.1', round);
      assert.deepEqual(offered, [{ name: 'https', port: 443, protocol: 'TCP', targetPort: running.port }], round);
      assert.deepEqual(of('endpoints')['subsets'], [{ addresses: [{ ip: '127.0.0.2' }], ports }], round);
      const slice = of('discovery.k8s.io/endpointslices');
      assert.deepEqual(slice['ports'], ports, round);
      assert.deepEqual(slice['endpoints'], [{ addresses: ['127.0.0.2'], conditions: { ready: true } }], round);
      await running.stop();
      running = await start();
    }
  } finally {
    await running.stop();
    await rm(dir, { recursive: true });
  }
});
