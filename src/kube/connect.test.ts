// The budgets of the clients that share one connection.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { connectApi } from './connect.ts';
import { resolveKubeconfig } from './kubeconfig.ts';
import { NODES, TOKEN_REVIEWS } from './resources.ts';

it('questions about strangers spend a budget of their own', async () => {
  const server = createServer((_request, response) =>
    response.setHeader('content-type', 'application/json').end('{"metadata":{"name":"n"}}'),
  );
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } }],
    users: [],
    contexts: [{ name: 'x', context: { cluster: 'c', user: '' } }],
    'current-context': 'x',
  };
  const access = await resolveKubeconfig(JSON.stringify(config), '/kubeconfig');
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
    server.closeAllConnections();
    server.close();
  }
});
