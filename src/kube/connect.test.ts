// The budgets of the clients that share one connection.
import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { LeveledLogger, silentLogger, type Line } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { connectApi, heartbeatTimeoutMs } from './connect.ts';
import { resolveKubeconfig, type ClusterAccess } from './kubeconfig.ts';
import { NODES, TOKEN_REVIEWS } from './resources.ts';
import { ThrottleLog } from './throttle-log.ts';

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
  const slow = { qps: 0.01, burst: 1, eventQps: 1, eventBurst: 1, leaseDurationSeconds: 40, statusUpdateMs: 10_000 };
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
  let busy = 2;
  const { access, host, close } = await serverWith((request, response) => {
    if (request.method === 'PUT' && busy-- > 0) return response.writeHead(429, { 'retry-after': '0' }).end('{}');
    return response
      .setHeader('content-type', 'application/json')
      .end(request.url?.includes('watch') ? '' : '{"items":[]}');
  });
  const metrics = new Registry();
  const api = connectApi({ clock: systemClock, log: silentLogger, metrics }, access, {
    qps: 50,
    burst: 100,
    eventQps: 1,
    eventBurst: 1,
    leaseDurationSeconds: 40,
    statusUpdateMs: 10_000,
    version: 'v1.36.0',
    architecture: 'amd64',
  });
  const { signal } = new AbortController();
  try {
    await api.main.list(NODES, {}, signal);
    await api.main.create(TOKEN_REVIEWS, {}, { spec: 'x'.repeat(300) }, signal);
    await api.main.replace(NODES, { name: 'n' }, {}, signal);
    for await (const event of api.main.watch(NODES, {}, 1000, signal)) assert.fail(event.type);
  } finally {
    close();
  }
  const shown = metrics.render();
  const has = (name: string, labels: string, value: number): void =>
    assert.ok(shown.includes(`${name}{${labels}} ${value}\n`), `${name}{${labels}} ${value} is not in\n${shown}`);
  has('rest_client_requests_total', `code="200",host="${host}",method="GET"`, 2);
  has('rest_client_requests_total', `code="429",host="${host}",method="PUT"`, 2);
  has('rest_client_request_retries_total', `code="429",host="${host}",verb="PUT"`, 1);
  has('rest_client_request_retries_total', `code="200",host="${host}",verb="PUT"`, 1);
  assert.doesNotMatch(shown, /retries_total\{[^}]*verb="GET"/);
  for (const name of ['request_duration_seconds', 'rate_limiter_duration_seconds', 'request_size_bytes'])
    has(`rest_client_${name}_count`, `host="${host}",verb="GET"`, 1);
  has('rest_client_request_size_bytes_bucket', `host="${host}",le="256",verb="POST"`, 0);
  has('rest_client_request_size_bytes_bucket', `host="${host}",le="512",verb="POST"`, 1);
  has('rest_client_response_size_bytes_sum', `host="${host}",verb="POST"`, 12);
  has('rest_client_rate_limiter_duration_seconds_count', `host="${host}",verb="PUT"`, 3);
  has('rest_client_request_size_bytes_count', `host="${host}",verb="PUT"`, 3);
  has('rest_client_request_duration_seconds_count', `host="${host}",verb="PUT"`, 1);
  has('rest_client_response_size_bytes_count', `host="${host}",verb="PUT"`, 1);
});

it('the time of a request is that of all its attempts and waits; a refusal has a size, no answer has none', async () => {
  let asked = 0;
  const { access, host, close } = await serverWith((request, response) => {
    if (request.method === 'GET') return request.socket.destroy();
    if (asked++ === 0) return response.writeHead(429, { 'retry-after': '1' }).end();
    return response.writeHead(403).end('{"kind":"Status"}');
  });
  const metrics = new Registry();
  const settings = { ...TIGHT, qps: 50, burst: 100 };
  const api = connectApi({ clock: systemClock, log: silentLogger, metrics }, access, {
    ...settings,
    version: 'v1.36.0',
    architecture: 'amd64',
  });
  const { signal } = new AbortController();
  try {
    await assert.rejects(api.main.create(TOKEN_REVIEWS, {}, {}, signal), { kind: 'denied' });
    await assert.rejects(api.main.get(NODES, { name: 'n' }, signal));
    await assert.rejects(async () => {
      for await (const event of api.main.watch(NODES, {}, 1000, signal)) assert.fail(event.type);
    });
  } finally {
    close();
  }
  const shown = metrics.render();
  const valueOf = (name: string, labels: string): number =>
    Number(
      shown
        .split('\n')
        .find((line) => line.startsWith(`rest_client_${name}{${labels}} `))
        ?.split(' ')[1],
    );
  const post = `host="${host}",verb="POST"`;
  assert.equal(valueOf('request_duration_seconds_count', post), 1);
  assert.ok(valueOf('request_duration_seconds_sum', post) >= 1, 'the wait that the server asked for');
  assert.equal(valueOf('response_size_bytes_sum', post), 17);
  assert.equal(valueOf('request_duration_seconds_count', `host="${host}",verb="GET"`), 1);
  assert.ok(!shown.includes(`rest_client_response_size_bytes_count{host="${host}",verb="GET"}`));
  assert.equal(valueOf('requests_total', `code="<error>",host="${host}",method="GET"`), 2, 'the watch as well');
});

const TIGHT = { qps: 0.01, burst: 1, eventQps: 1, eventBurst: 1, leaseDurationSeconds: 40, statusUpdateMs: 10_000 };

it('watches spend nothing of the budget and do not wait for it', async () => {
  const { access, close } = await serverWith((request, response) =>
    response.setHeader('content-type', 'application/json').end(request.url?.includes('watch') ? '' : '{"items":[]}'),
  );
  const api = connectApi({ clock: systemClock, log: silentLogger }, access, {
    ...TIGHT,
    version: 'v1.36.0',
    architecture: 'amd64',
  });
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(new Error('still waiting')), 5000);
  const watch = async (): Promise<void> => {
    for await (const event of api.main.watch(NODES, {}, 1000, stop.signal)) assert.fail(event.type);
  };
  try {
    for (let i = 0; i < 5; i++) await watch();
    assert.deepEqual((await api.main.list(NODES, {}, stop.signal)).items, [], 'the one token is still there');
    await watch();
  } finally {
    clearTimeout(late);
    close();
  }
});

it('a call that waits for its turn is said, with the setting that has it wait', async () => {
  const { access, close } = await serverWith((_request, response) =>
    response.setHeader('content-type', 'application/json').end('{"items":[]}'),
  );
  const lines: Line[] = [];
  const log = new LeveledLogger(systemClock, { write: (line) => void lines.push(line) }, () => 3);
  const settings = { ...TIGHT, qps: 10, version: 'v1.36.0', architecture: 'amd64' };
  const api = connectApi({ clock: systemClock, log }, access, settings);
  const { signal } = new AbortController();
  try {
    await Promise.all([api.main.list(NODES, {}, signal), api.main.list(NODES, {}, signal)]);
  } finally {
    close();
  }
  const [line] = lines.filter(({ message }) => message === 'Waited before sending request');
  const { delay, ...fields } = line?.fields ?? {};
  assert.match(String(delay), /^0\.\d{3}s$/);
  assert.deepEqual(fields, {
    component: 'request',
    reason: 'client-side throttling, not priority and fairness',
    verb: 'LIST',
    URL: '/api/v1/nodes',
    limit: 'kubeAPIQPS=10',
  });
});

for (const [verbosity, told] of [
  [0, ['1.500s', '3.500s']],
  [2, ['1.500s', '2.500s', '3.500s']],
  [3, ['0.060s', '1.500s', '1.500s', '2.500s', '3.500s']],
] as const)
  it(`waits for a turn are said at a bounded rate with -v=${verbosity}`, async () => {
    const clock = new ManualClock();
    const lines: Line[] = [];
    const log = new LeveledLogger(clock, { write: (line) => void lines.push(line) }, () => verbosity);
    const throttled = new ThrottleLog({ clock, log });
    const waited = (ms: number): void => throttled.waited({ ms, verb: 'GET', path: '/p', limit: 'kubeAPIQPS=50' });
    for (const ms of [40, 60, 1500, 1500]) waited(ms);
    await clock.advance(1000);
    waited(2500);
    await clock.advance(9000);
    waited(3500);
    assert.deepEqual(
      lines.map(({ fields }) => fields['delay']),
      told,
    );
  });

for (const [leaseDurationSeconds, statusUpdateMs, timeoutMs] of [
  [40, 10_000, 10_000],
  [40, 60_000, 40_000],
  [5, 10_000, 5000],
  [40, 3000, 3000],
] as const)
  it(`heartbeats every ${statusUpdateMs} ms for a lease of ${leaseDurationSeconds} s wait ${timeoutMs} ms`, () =>
    assert.equal(heartbeatTimeoutMs({ leaseDurationSeconds, statusUpdateMs }), timeoutMs));
