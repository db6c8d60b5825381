import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { HealthzServer } from './healthz.ts';

async function bound(server: HealthzServer): Promise<number> {
  while (server.boundPort === undefined) await systemClock.sleep(5, new AbortController().signal);
  return server.boundPort;
}

test('health and nothing else', async () => {
  const stop = new AbortController();
  const server = new HealthzServer({ clock: systemClock, log: silentLogger }, { address: '127.0.0.1', port: 0 });
  const done = server.run(stop.signal);
  const base = `http://127.0.0.1:${await bound(server)}`;
  const table: [string, string, number, string, string | null][] = [
    ['GET', '/healthz', 200, 'ok', 'nosniff'],
    ['POST', '/healthz', 200, 'ok', 'nosniff'],
    ['GET', '/healthz?verbose', 200, '[+]ping ok\nhealthz check passed\n', 'nosniff'],
    [
      'GET',
      '/healthz?verbose&exclude=x',
      200,
      '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "x"\nhealthz check passed\n',
      'nosniff',
    ],
    ['GET', '/healthz?verbose&exclude=ping', 200, '[+]ping excluded: ok\nhealthz check passed\n', 'nosniff'],
    ['GET', '/healthz/ping', 200, 'ok', null],
    ...[
      '/',
      '/healthz/',
      '/healthz/log',
      '/healthz/syncloop',
      '/livez',
      '/readyz',
      '/metrics',
      '/pods',
      '/debug/pprof/',
      '/configz',
      '/exec/a/b/c',
    ].map((path): [string, string, number, string, string] => ['GET', path, 404, '404 page not found\n', 'nosniff']),
  ];
  for (const [method, path, status, body, sniff] of table) {
    const answer = await fetch(base + path, { method });
    assert.equal(answer.status, status, path);
    assert.equal(await answer.text(), body, path);
    assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.equal(answer.headers.get('x-content-type-options'), sniff, path);
  }
  assert.equal(server.pings, 5, 'but for the one that asked not to be told');
  stop.abort();
  await done;
  await assert.rejects(fetch(`${base}/healthz`));
});

test('a port that is taken is tried again', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const address = other.address();
  assert.ok(typeof address === 'object' && address !== null);
  const clock = new ManualClock();
  const stop = new AbortController();
  let failed: () => void = () => undefined;
  const failure = new Promise<void>((resolve) => (failed = resolve));
  const log = { ...silentLogger, error: () => failed() };
  const server = new HealthzServer({ clock, log }, { address: '127.0.0.1', port: address.port });
  const done = server.run(stop.signal);
  await failure;
  await new Promise((resolve) => other.close(resolve));
  await clock.advance(5000);
  assert.equal(await bound(server), address.port);
  stop.abort();
  await done;
});
