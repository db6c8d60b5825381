// The budgets of the clients that share one connection.
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { Registry } from '../lib/metrics.ts';
import { connectApi } from './connect.ts';
import { resolveKubeconfig, type ClusterAccess } from './kubeconfig.ts';
import { NODES, TOKEN_REVIEWS } from './resources.ts';

async function serverWith(respond: RequestListener): Promise<{ access: ClusterAccess; host: string; close(): void }> {
  const server = createServer(respond);
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: `http://${host}` } }],
    users: [],
    contexts: [{ name: 'x', context: { cluster: 'c', user: '' } }],
    'current-context': 'x',
  };
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { access: await resolveKubeconfig(JSON.stringify(config), '/kubeconfig'), host, close };
}

it('questions about strangers spend a budget of their own', async () => {
  const { access, close } = await serverWith((_request, response) =>
    response.setHeader('content-type', 'application/json').end('{"metadata":{"name":"n"}}'),
  );
  const slow = { qps: 0.01, burst: 1, eventQps: 1, eventBurst: 1, leaseDurationSeconds: 40 };
  const api = connectApi({ clock: systemClock, log: silentLogger }, access, {
    ...slow,
    version: 'v1.36.0',
    architecture: 'amd64',
  });
  const stop = new AbortController();
  const strangers = Promise.allSettled(
    Array.from({ length: 20 }, () => api.reviews.create(TOKEN_REVIEWS, {}, {}, stop.signal)),
  );
  try {
    assert.equal((await api.main.get(NODES, { name: 'n' }, stop.signal)).metadata.name, 'n');
  } finally {
    stop.abort(new Error('over'));
    await strangers;
    close();
  }
});

it('calls are counted by method, their times and sizes too, and a watch has neither', async () => {
  const { access, host, close } = await serverWith((request, response) =>
    response.setHeader('content-type', 'application/json').end(request.url?.includes('watch') ? '' : '{"items":[]}'),
  );
  const metrics = new Registry();
  const api = connectApi({ clock: systemClock, log: silentLogger, metrics }, access, {
    qps: 50,
    burst: 100,
    eventQps: 1,
    eventBurst: 1,
    leaseDurationSeconds: 40,
    version: 'v1.36.0',
    architecture: 'amd64',
  });
  const { signal } = new AbortController();
  try {
    await api.main.list(NODES, {}, signal);
    await api.main.create(TOKEN_REVIEWS, {}, { spec: 'x'.repeat(300) }, signal);
    for await (const event of api.main.watch(NODES, {}, 1000, signal)) assert.fail(event.type);
  } finally {
    close();
  }
  const shown = metrics.render();
  const has = (name: string, labels: string, value: number): void =>
    assert.ok(shown.includes(`${name}{${labels}} ${value}\n`), `${name}{${labels}} ${value} is not in\n${shown}`);
  has('rest_client_requests_total', `code="200",host="${host}",method="GET"`, 2);
  for (const name of ['request_duration_seconds', 'rate_limiter_duration_seconds', 'request_size_bytes'])
    has(`rest_client_${name}_count`, `host="${host}",verb="GET"`, 1);
  has('rest_client_request_size_bytes_bucket', `host="${host}",le="256",verb="POST"`, 0);
  has('rest_client_request_size_bytes_bucket', `host="${host}",le="512",verb="POST"`, 1);
  has('rest_client_response_size_bytes_sum', `host="${host}",verb="POST"`, 12);
});
