// The page over HTTP, on its own port: who gets in, what the answers carry, live views, logs, and that it is read-only.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { until } from '../../test/harness/until.ts';
import type { Pod } from '../core/pod.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { Listener } from '../server/listener.ts';
import { NodePage } from './page.ts';
import type { PagePorts } from './ports.ts';
import { pageRecords } from './records.ts';

const pod: Pod = {
  metadata: { name: 'web', namespace: 'shop', uid: 'u1' },
  spec: {
    containers: [{ name: 'main', env: [{ name: 'PASSWORD', value: 'planted' }] }, { name: 'side' }],
  },
  status: { phase: 'Pending', containerStatuses: [] },
};

const unread = (): Promise<never> => Promise.reject(new Error('not measured in this test'));

const retried: string[] = [];
const portsIn = (dir: string): PagePorts => ({
  clock: systemClock,
  log: silentLogger,
  records: pageRecords(systemClock, silentLogger, dir),
  facts: () => ({ name: 'n', version: 'v', runtime: 'r', architecture: 'amd64', standalone: true, startedAtMs: 0 }),
  pods: { all: () => [pod], byName: (_, name) => (name === 'web' ? pod : undefined), max: 110 },
  pod: {
    observed: () => undefined,
    why: () => ({ state: 'waiting', cause: 'Test', sentence: 'It waits.', evidence: ['e'], todo: 'Wait.' }),
    events: () => [],
    probes: () => [],
    mounts: () => [],
    volumeComplaints: () => ['volume "data": waits for a disk (for 3s)'],
    waterfalls: () => [],
    retry: (pod) => void retried.push(pod.metadata.name),
    cgroup: unread,
    logs: {
      read: async function* (_, container) {
        yield Buffer.from(container === 'main' ? '2026-01-01T00:00:02Z two\n' : '2026-01-01T00:00:01Z one\n');
      },
    },
  },
  workers: () => [],
  problems: () => [],
  node: { node: () => undefined, runtimeErrors: () => [], signals: () => [], figures: unread, summary: unread },
  images: {
    list: () => [],
    collectOrder: () => [],
    thresholds: () => ({ highPercent: 85, lowPercent: 80 }),
    pulls: () => [],
  },
});

type Answer = { readonly status: number; readonly headers: IncomingMessage['headers']; readonly body: string };

function ask(port: number, path: string, headers: Record<string, string> = {}, until?: RegExp): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
      let body = '';
      const done = (): void => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body });
      answer.setEncoding('utf8').on('data', (text: string) => {
        body += text;
        if (until?.test(body) !== true) return;
        done();
        answer.destroy();
      });
      answer.on('end', done);
    });
    sent.on('error', reject);
    sent.end();
  });
}

describe('the page on its own port', () => {
  const stop = new AbortController();
  const nobody = { decide: () => Promise.reject(new Error('nobody shows a certificate')) };
  const exec = {
    roots: [],
    routes: [
      {
        path: '/exec/{namespace}/{pod}/{container}',
        handle: ({ response }: { response: { end(text: string): unknown } }): void => void response.end('exec'),
      },
    ],
  };
  const ports: Record<'read' | 'write', number> = { read: 0, write: 0 };
  const running: Promise<void>[] = [];
  let dir: string;
  let token: string;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kts-page-'));
    for (const kind of ['read', 'write'] as const) {
      const options = { rootDir: dir, address: '127.0.0.1', port: 1, write: kind === 'write', nodeName: 'n' };
      const page = new NodePage(portsIn(dir), { ...options, addresses: () => [] });
      const [own] = await page.ownPorts({ streams: exec, guard: nobody });
      assert.ok(own !== undefined);
      const listener = new Listener(own.deps, { ...own.options, port: 0 });
      running.push(own.optional(listener).run(stop.signal));
      ports[kind] = await until('it listens', () => listener.boundPort);
    }
    token = (await readFile(join(dir, 'node-page', 'token'), 'utf8')).trim();
  });
  after(async () => {
    stop.abort();
    await Promise.all(running);
    await rm(dir, { recursive: true });
  });
  it('names the file of the token in the log, never the token', async () => {
    const lines: string[] = [];
    const write = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
    const log = { ...silentLogger, info: write, warn: write, debug: write, error: write };
    const rootDir = await mkdtemp(join(tmpdir(), 'kts-page-'));
    try {
      const options = { rootDir, address: '127.0.0.1', port: 1, write: false, nodeName: 'n', addresses: () => [] };
      await new NodePage({ ...portsIn(rootDir), log }, options).ownPorts({ streams: exec, guard: nobody });
      const made = (await readFile(join(rootDir, 'node-page', 'token'), 'utf8')).trim();
      assert.equal(lines.length, 1);
      assert.match(lines[0] ?? '', /node-page\/token/);
      assert.equal(lines[0]?.includes(made), false);
    } finally {
      await rm(rootDir, { recursive: true });
    }
  });

  const bearer = (): Record<string, string> => ({ authorization: `Bearer ${token}` });

  it('gives a cookie for the token, which opens everything below the page', async () => {
    const entered = await ask(ports.read, `/?token=${token}`);
    assert.equal(entered.status, 303);
    assert.equal(entered.headers.location, 'page/');
    const [cookie = ''] = entered.headers['set-cookie'] ?? [];
    assert.match(cookie, /^kubelet-node-page=\S+; Path=\/page\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
    assert.ok(!cookie.includes(token));
    const page = await ask(ports.read, '/page/', { cookie: cookie.split(';')[0] ?? '' });
    assert.equal(page.status, 200);
    assert.match(page.body, /<script type="module" src="assets\/app.js">/);
    assert.match(String(page.headers['content-security-policy']), /^default-src 'none'; script-src 'self'/);
    assert.doesNotMatch(page.body, /<style|style=|<script>|onclick|https?:/);
  });

  it('refuses strangers, with the same headers', async () => {
    const refused = await ask(ports.read, '/page/api/pods');
    assert.equal(refused.status, 401);
    assert.match(String(refused.headers['content-security-policy']), /frame-ancestors 'none'/);
    assert.equal(refused.headers['x-frame-options'], 'DENY');
    assert.equal((await ask(ports.read, '/page/api/pods', { ...bearer(), host: 'evil.example' })).status, 403);
    const crossSite = { ...bearer(), 'sec-fetch-site': 'cross-site' };
    assert.equal((await ask(ports.read, '/page/api/pods', crossSite)).status, 403);
    assert.equal((await ask(ports.read, '/metrics', bearer())).status, 404);
  });

  it('serves every file of the front end as JavaScript that names only such files', async () => {
    const seen = new Set(['boot.js', 'app.js']);
    for (const name of seen) {
      const { status, headers, body } = await ask(ports.read, `/page/assets/${name}`, bearer());
      assert.equal(status, 200, name);
      assert.match(String(headers['content-type']), /^text\/javascript/);
      assert.doesNotMatch(body, /innerHTML|eval\(|\.ts'/);
      for (const [, next = ''] of body.matchAll(/from '\.\/([a-z-]+\.js)'/g)) seen.add(next);
    }
    assert.ok(seen.size > 10, [...seen].join());
    for (const name of ['style.css', 'icon.svg'])
      assert.equal((await ask(ports.read, `/page/assets/${name}`, bearer())).status, 200);
    for (const name of ['none.js', 'tsconfig.json', '..%2fpage.js', 'README.md'])
      assert.equal((await ask(ports.read, `/page/assets/${name}`, bearer())).status, 404, name);
    const first = await ask(ports.read, '/page/assets/app.js', bearer());
    const again = await ask(ports.read, '/page/assets/app.js', {
      ...bearer(),
      'if-none-match': String(first.headers.etag),
    });
    assert.equal(again.status, 304);
  });

  it('answers also where figures cannot be read, and hides what sounds like a secret', async () => {
    for (const name of ['now', 'pods', 'images', 'timeline', 'workers'])
      assert.equal((await ask(ports.read, `/page/api/${name}`, bearer())).status, 200, name);
    const { body } = await ask(ports.read, '/page/api/pods/shop/web', bearer());
    assert.match(body, /"sentence":"It waits."/);
    assert.doesNotMatch(body, /planted/);
    assert.equal((await ask(ports.read, '/page/api/pods/shop/none', bearer())).status, 404);
  });

  it('sends live views and logs as events', async () => {
    const live = await ask(ports.read, '/page/api/live?view=pods', bearer(), /event: pods\ndata: .*\n\n/);
    assert.match(live.body, /"name":"web"/);
    assert.equal((await ask(ports.read, '/page/api/live?view=nothing', bearer())).status, 404);
    const logs = await ask(ports.read, '/page/api/logs/shop/web', bearer());
    assert.match(logs.body, /event: lines\ndata: \[\{"c":"side".*"s":"one"\},\{"c":"main".*"s":"two"\}\]/);
    assert.match(logs.body, /event: end/);
  });

  it('runs commands only where it may write', async () => {
    const path = '/page/exec/shop/web/main';
    assert.equal((await ask(ports.read, path, bearer())).status, 404);
    assert.equal((await ask(ports.write, path, bearer())).body, 'exec');
    assert.equal((await ask(ports.write, path)).status, 401);
    assert.match((await ask(ports.write, '/page/api/now', bearer())).body, /"write":true/);
  });

  it('tries a pod again only where it may write, and never for another site', async () => {
    const post = async (port: number, headers: Record<string, string>, name = 'web'): Promise<number> =>
      (await fetch(`http://127.0.0.1:${port}/page/api/retry/shop/${name}`, { method: 'POST', headers })).status;
    assert.equal(await post(ports.read, bearer()), 404);
    assert.equal(await post(ports.write, {}), 401);
    assert.equal(await post(ports.write, { ...bearer(), 'sec-fetch-site': 'cross-site' }), 403);
    assert.equal(await post(ports.write, { ...bearer(), origin: 'http://evil.example' }), 403);
    assert.equal((await ask(ports.write, '/page/api/retry/shop/web', bearer())).status, 405);
    assert.equal(await post(ports.write, bearer(), 'other'), 404);
    assert.deepEqual(retried, []);
    assert.equal(await post(ports.write, bearer()), 204);
    assert.deepEqual(retried, ['web']);
  });

  it('does not take the agent down when its port is taken', async () => {
    const options = { rootDir: dir, address: '127.0.0.1', port: ports.read, write: false, nodeName: 'n' };
    const page = new NodePage(portsIn(dir), { ...options, addresses: () => [] });
    const [own] = await page.ownPorts({ streams: exec, guard: nobody });
    assert.ok(own !== undefined);
    const end = new AbortController();
    const run = own.optional(new Listener(own.deps, own.options)).run(end.signal);
    assert.equal(
      await Promise.race([run.then(() => 'ended'), systemClock.sleep(100, end.signal).then(() => 'lives')]),
      'lives',
    );
    end.abort();
    await run;
  });
});
