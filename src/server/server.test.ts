// The pure parts by tables, and one port with a few routes and thousands of odd requests.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { TLSSocket } from 'node:tls';
import type { Pod } from '../core/pod.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { buildGuard, loopbackOnly } from './access.ts';
import { clientCertificate } from './authenticators.ts';
import { answerHealth } from './health-checks.ts';
import { Listener } from './listener.ts';
import { logContainerOf } from './log-container.ts';
import { parseLogQuery } from './log-query.ts';
import { journalArguments, missingFile, problemsOf, readNodeLogQuery } from './node-log-query.ts';
import { methodLabel, pathLabel } from './request-metrics.ts';
import { cleanPath, exactly, joined, match, resolve } from './router.ts';
import { byteRange } from './routes/log-files.ts';
import { randomRuns } from '../../test/harness/random-runs.ts';
import { until } from '../../test/harness/until.ts';
import { forwardedHeaders } from './streaming/pass-through.ts';
import { forwardedPorts, streamOptions } from './streaming/stream-options.ts';
import { tlsSettings } from './tls-settings.ts';

const stopped = new AbortController().signal;
const params = (text: string): URLSearchParams => new URLSearchParams(text);

describe('paths', () => {
  const endpoint = joined([
    exactly('/metrics', () => undefined),
    {
      roots: [{ prefix: '/logs', slashOnly: true }],
      routes: [{ path: '/logs/{path...}', methods: ['GET'], handle: () => undefined }],
    },
    { roots: [{ prefix: '/run' }], routes: [{ path: '/run/{a}/{b}', methods: ['POST'], handle: () => undefined }] },
  ]);
  const table: readonly (readonly [string, string, string])[] = [
    ['GET', '/metrics', 'route'],
    ['PATCH', '/metrics', 'route'],
    ['GET', '/metrics/', 'unknown'],
    ['GET', '/metricsx', 'unknown'],
    ['GET', '/logs', 'redirect'],
    ['GET', '/logs/', 'route'],
    ['GET', '/logs/a/b', 'route'],
    ['POST', '/logs/a', 'wrongMethod'],
    ['POST', '/run/a/b', 'route'],
    ['POST', '/run/a/b/', 'route'],
    ['POST', '/run/a/b//', 'noRoute'],
    ['POST', '/run/a', 'noRoute'],
    ['POST', '/run/a/%zz', 'noRoute'],
    ['POST', '/run//b', 'noRoute'],
    ['GET', '/', 'unknown'],
  ];
  for (const [method, path, kind] of table)
    it(`${method} ${path} → ${kind}`, () => assert.equal(resolve(endpoint, method, path).kind, kind));

  it('dots are resolved, escapes decoded once', () => {
    assert.equal(cleanPath('/logs/../../etc/passwd'), '/etc/passwd');
    assert.equal(cleanPath('/logs/./a/..'), '/logs/');
    assert.deepEqual(match('/x/{a}', '/x/%252e'), { a: '%2e' });
  });

  it('labels come from a closed list', () => {
    assert.deepEqual(
      ['/exec/a/b/c', '/metrics/cadvisor', '/metrics/x', '/', '/constructor', '/healthz/log'].map(pathLabel),
      ['exec', 'metrics/cadvisor', 'other', 'other', 'other', 'healthz'],
    );
    assert.deepEqual(['GET', 'BREW'].map(methodLabel), ['GET', 'other']);
  });
});

describe('log queries', () => {
  const table: readonly (readonly [string, boolean, number | object])[] = [
    ['', false, { follow: false, previous: false, timestamps: false }],
    ['follow=true&previous=1&timestamps', false, { follow: true, previous: true, timestamps: true }],
    ['follow=false&previous=0', false, { follow: false, previous: false, timestamps: false }],
    ['tail=all&tailLines=x', false, { follow: false, previous: false, timestamps: false }],
    ['tail=5', false, { follow: false, previous: false, timestamps: false, tailLines: 5 }],
    ['tailLines=x', false, 400],
    ['tailLines=', false, 400],
    ['tailLines=9223372036854775808', false, 400],
    ['sinceTime=yesterday', false, 400],
    ['tailLines=-1', false, 422],
    ['limitBytes=0', false, 422],
    ['sinceSeconds=0', false, 422],
    ['sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z', false, 422],
    ['stream=Stdout', false, 400],
    ['stream=Both', false, 422],
    ['stream=Stdout&tailLines=1', true, 422],
    ['stream=Stderr', true, { follow: false, previous: false, timestamps: false, stream: 'Stderr' }],
    ['sinceSeconds=10', false, { follow: false, previous: false, timestamps: false, sinceNanos: 90_000_000_000n }],
    [
      'sinceTime=1970-01-01T00:00:01.000000001Z',
      false,
      { follow: false, previous: false, timestamps: false, sinceNanos: 1_000_000_001n },
    ],
  ];
  for (const [query, split, want] of table)
    it(`${query} ${split ? '(split streams)' : ''}`, () => {
      const got = parseLogQuery(params(query), split, 100_000);
      assert.deepEqual(got.ok ? got.options : got.status, want);
    });
});

describe('whose log', () => {
  const terminated = { exitCode: 0, containerID: 'containerd://old' };
  const pod = (state: object, lastState: object = {}): Pod =>
    ({
      metadata: { name: 'p' },
      spec: { containers: [] },
      status: { containerStatuses: [{ name: 'c', state, lastState, containerID: 'containerd://now' }] },
    }) as unknown as Pod;
  const table: readonly (readonly [string, Pod, boolean, string])[] = [
    ['running', pod({ running: {} }), false, 'now'],
    ['ended', pod({ terminated: { exitCode: 1, containerID: 'containerd://now' } }), false, 'now'],
    ['ended before it began', pod({ terminated: { exitCode: 1 } }, { terminated }), false, 'old'],
    ['ended, nothing known', pod({ terminated: { exitCode: 1 } }), false, 'container "c" in pod "p" is terminated'],
    ['waiting to restart', pod({ waiting: { reason: 'CrashLoopBackOff' } }, { terminated }), false, 'old'],
    [
      'pulling',
      pod({ waiting: { reason: 'ErrImagePull' } }),
      false,
      'container "c" in pod "p" is waiting to start: image can\'t be pulled',
    ],
    [
      'backing off',
      pod({ waiting: { reason: 'ImagePullBackOff' } }),
      false,
      'container "c" in pod "p" is waiting to start: trying and failing to pull image',
    ],
    [
      'creating',
      pod({ waiting: { reason: 'ContainerCreating' } }),
      false,
      'container "c" in pod "p" is waiting to start: ContainerCreating',
    ],
    ['no state', pod({}), false, 'container "c" in pod "p" is waiting to start - no logs yet'],
    ['previous', pod({ running: {} }, { terminated }), true, 'old'],
    ['no previous', pod({ running: {} }), true, 'previous terminated container "c" in pod "p" not found'],
  ];
  for (const [what, p, previous, want] of table)
    it(what, () => {
      const got = logContainerOf(p, 'c', previous);
      assert.equal(got.ok ? got.containerId : got.why, want);
    });
});

describe('node log queries', () => {
  const answerTo = (query: string): readonly [number, string] => {
    const read = readNodeLogQuery(params(query));
    if (!read.ok) return [400, read.body];
    if (read.query === undefined) return [200, 'no query'];
    const problems = problemsOf(read.query);
    return problems === undefined ? [200, 'query'] : [406, problems];
  };
  const table: readonly (readonly [query: string, status: number, body: string])[] = [
    ['', 200, 'no query'],
    ['x=1', 200, 'no query'],
    ['query=kubelet', 200, 'query'],
    ['query=kubelet&query=containerd&boot=-1&tailLines=10&pattern=err.*', 200, 'query'],
    ['query=kubelet&query=%20', 200, 'query'],
    ['query=/foo.log', 200, 'query'],
    ['query=', 400, 'query: Invalid value: [""]: may not be empty\n'],
    ['query=%20&boot=0', 400, 'query: Invalid value: [" "]: may not be empty\n'],
    ['boot=0', 406, 'query: Required value: cannot be empty with options\n'],
    ['query=/a&query=/b', 406, 'query: Invalid value: ["/a","/b"]: cannot specify more than one file\n'],
    ['query=/a&query=b', 406, 'query: Invalid value: "[/a], [b]": cannot specify a file and service\n'],
    ['query=/a&boot=0', 406, 'query: Invalid value: ["/a"]: cannot specify file with options\n'],
    ['query=a&query=b&query=c&query=d&query=e', 406, 'query: Too many: 5: must have at most 4 items\n'],
    ['query=a;reboot', 406, 'query: Invalid value: "a;reboot": input contains unsupported characters\n'],
    [
      'query=$(reboot)&boot=1',
      406,
      '[query: Invalid value: "$(reboot)": input contains unsupported characters, boot: Invalid value: 1: must be less than 1]\n',
    ],
    [`query=${'a'.repeat(257)}`, 406, `query: Invalid value: "${'a'.repeat(257)}": length must be less than 256\n`],
    ['query=a&tailLines=100001', 406, 'tailLines: Invalid value: 100001: must be between 0 and 100000, inclusive\n'],
    [
      'query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z',
      406,
      'untilTime: Invalid value: "2026-01-01T00:00:00Z": must be after `sinceTime`\n',
    ],
    [
      'query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00.5%2B02:00',
      406,
      'untilTime: Invalid value: "2026-01-01T00:00:00.5+02:00": must be after `sinceTime`\n',
    ],
    ['query=a&pattern=(', 406, 'pattern: Invalid value: "(": is no regular expression\n'],
    ['query=a&pattern=(?i)error|(?P<n>\\-x)', 200, 'query'],
    ['query=a&boot=x', 400, 'boot: Invalid value: "x": strconv.Atoi: parsing "x": invalid syntax\n'],
    ['query=a&sinceTime=now', 400, 'sinceTime: Invalid value: "now": invalid time format\n'],
  ];
  for (const [query, status, body] of table)
    it(query.slice(0, 60) || 'nothing', () => assert.deepEqual(answerTo(query), [status, body]));

  it('name a file that is not there', () =>
    assert.equal(
      missingFile('/var/log', '/a/../b.log'),
      'query: Invalid value: ["/a/../b.log"]: stat /var/log/b.log: no such file or directory\n',
    ));

  it('become arguments, never words of a shell', () => {
    const text = 'query=kubelet&query=-x&sinceTime=2026-01-02T03:04:05Z&tailLines=3&pattern=a b&boot=-1';
    const parsed = readNodeLogQuery(params(text));
    assert.ok(parsed.ok && parsed.query !== undefined);
    assert.deepEqual(journalArguments(parsed.query), [
      '--utc',
      '--no-pager',
      '--output=short-precise',
      '--since=2026-01-02 03:04:05',
      '--pager-end',
      '--lines=3',
      '--unit=kubelet',
      '--unit=-x',
      '--grep=a b',
      '--boot',
      '-1',
    ]);
  });
});

describe('small decisions', () => {
  it('stream options', () => {
    assert.deepEqual(streamOptions(params('input=1&output=1&error=1&tty=1')), {
      stdin: true,
      stdout: true,
      stderr: false,
      tty: true,
    });
    assert.throws(() => streamOptions(params('error=1&tty=1')), /at least 1 of stdin/);
    assert.throws(() => streamOptions(params('output=true')), /at least 1 of stdin/);
  });

  it('forwarded ports', () => {
    const socket = { headers: { connection: 'Upgrade', upgrade: 'websocket' } } as IncomingMessage;
    const spdy = { headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1' } } as IncomingMessage;
    assert.deepEqual(forwardedPorts(spdy, params('')), []);
    assert.deepEqual(forwardedPorts(socket, params('port=80,443&port=8080')), [80, 443, 8080]);
    for (const [query, why] of [
      ['', /"port" is required/],
      ['port=', /cannot be empty/],
      ['port=x', /unable to parse "x" as a port/],
      ['port=0', /must be > 0/],
      ['port=65536', /value out of range/],
    ] as const)
      assert.throws(() => forwardedPorts(socket, params(query)), why);
  });

  it('credentials do not go on to the runtime', () => {
    const protocols = 'base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io';
    const rawHeaders = ['Host', 'node', 'Authorization', 'Bearer secret', 'Cookie', 'secret', 'Connection', 'Upgrade'];
    rawHeaders.push('Sec-WebSocket-Protocol', protocols);
    assert.deepEqual(forwardedHeaders({ rawHeaders } as IncomingMessage), {
      connection: ['Upgrade'],
      'sec-websocket-protocol': ['v4.channel.k8s.io'],
    });
  });

  it('byte ranges', () => {
    assert.deepEqual(byteRange('bytes=0-3', 10), { from: 0, to: 4 });
    assert.deepEqual(byteRange('bytes=-3', 10), { from: 7, to: 10 });
    assert.deepEqual(byteRange('bytes=5-', 10), { from: 5, to: 10 });
    assert.equal(byteRange('bytes=10-', 10), 'unsatisfiable');
    assert.equal(byteRange('bytes=0-1,3-4', 10), undefined);
  });

  it('health in words', () => {
    const checks = [
      { name: 'ping', failing: () => undefined },
      { name: 'log', failing: () => 'stuck' },
    ];
    assert.deepEqual(answerHealth(checks, params('')), {
      ok: false,
      body: '[+]ping ok\n[-]log failed: reason withheld\nhealthz check failed\n',
    });
    assert.deepEqual(answerHealth(checks, params('exclude=log')), { ok: true, body: 'ok' });
  });

  it('TLS names', () => {
    const none = { minVersion: '', cipherSuites: [], curves: [] };
    assert.equal(tlsSettings(none).minVersion, 'TLSv1.2');
    const weak = (tlsSettings(none).ciphers ?? '')
      .split(':')
      .filter((name) => !/^TLS_|^ECDHE-.*(GCM|POLY1305)/.test(name));
    assert.deepEqual(weak, [], 'only forward secrecy and authenticated encryption');
    const some = tlsSettings({
      minVersion: 'VersionTLS13',
      cipherSuites: ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'],
      curves: [29, 23],
    });
    assert.match(some.ciphers ?? '', /:ECDHE-RSA-AES128-GCM-SHA256$/);
    assert.equal(some.ecdhCurve, 'X25519:prime256v1');
    assert.throws(() => tlsSettings({ ...none, cipherSuites: ['toString'] }));
  });

  it('configurations with which nobody could be let in', () => {
    const cluster = {
      tokens: { authenticate: async () => undefined },
      access: { authorize: async () => ({ allowed: false }) },
    };
    const nowMs = (): number => 0;
    const o = {
      nodeName: 'n',
      clientCa: false,
      webhookAuthentication: false,
      anonymous: false,
      mode: 'Webhook',
      strictStreams: false,
    };
    assert.throws(() => buildGuard({ nowMs, cluster }, o), /^KubeletError: no authentication method configured$/);
    assert.throws(
      () => buildGuard({ nowMs, cluster }, { ...o, anonymous: true, mode: '' }),
      /no authorization mode specified/,
    );
    assert.throws(
      () => buildGuard({ nowMs, cluster }, { ...o, anonymous: true, mode: 'ABAC' }),
      /unknown authorization mode ABAC/,
    );
    assert.equal(loopbackOnly(o, true), true);
    assert.equal(loopbackOnly({ ...o, clientCa: true }, true), false);
    assert.equal(loopbackOnly(o, false), false);
  });

  it('the last of several common names counts, as in Go', async () => {
    const socket = Object.assign(Object.create(TLSSocket.prototype) as TLSSocket, {
      getPeerCertificate: () => ({
        raw: Buffer.from('x'),
        valid_to: 'Jan  1 00:00:00 2100 GMT',
        subject: { CN: ['a', 'b'] },
      }),
    });
    Object.defineProperty(socket, 'authorized', { value: true });
    const user = await clientCertificate(() => 0)({ socket } as unknown as IncomingMessage, stopped);
    assert.equal(user?.username, 'b');
  });
});

describe('a port', () => {
  const stop = new AbortController();
  let listener: Listener;
  let done: Promise<void>;
  let upgrades = 0;
  before(async () => {
    const endpoint = joined([
      exactly('/ok', ({ response }) => void response.end('ok')),
      exactly('/throws', () => {
        throw new Error('no');
      }),
      {
        roots: [{ prefix: '/up' }],
        routes: [
          {
            path: '/up/{x}',
            upgrades: true,
            handle: ({ upgrade, response }) => {
              upgrades++;
              if (upgrade === undefined) return void response.end('plain');
              response.writeHead(400).end('no');
            },
          },
        ],
      },
    ]);
    listener = new Listener({ endpoint, log: silentLogger }, { name: 'test', address: '127.0.0.1', port: 0 });
    done = listener.run(stop.signal);
    while (listener.boundPort === undefined) await systemClock.sleep(5, stop.signal);
  });
  after(async () => {
    stop.abort();
    await done;
  });

  const talk = (bytes: Buffer, waitMs: number): Promise<string> =>
    new Promise((resolveText) => {
      let got = '';
      const socket = connect({ host: '127.0.0.1', port: listener.boundPort ?? 0 }, () => socket.end(bytes));
      socket.setTimeout(waitMs, () => socket.destroy());
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => void (got += chunk.toString('latin1')));
      socket.on('close', () => resolveText(got));
    });

  it('leads a path with empty segments to the one without', async () => {
    const request = 'GET //ok///x?a=//b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    const answer = await talk(Buffer.from(request), 30_000);
    assert.match(answer, /^HTTP\/1\.1 307 /);
    assert.match(answer, /\r\nLocation: \/ok\/x\?a=\/\/b\r\n/);
    const posted = await talk(Buffer.from(request.replace('GET', 'POST')), 30_000);
    assert.match(posted, /^HTTP\/1\.1 307 /);
    assert.match(posted, /\r\nLocation: \/ok\/x\?a=\/\/b\r\n/);
    assert.match(posted, /\r\n\r\n$/);
    assert.doesNotMatch(posted, /Content-Type/);
  });

  it('notices clients that vanish without a word', async () => {
    const socket = connect({ host: '127.0.0.1', port: listener.boundPort ?? 0 });
    try {
      await once(socket, 'connect');
      const ends = [listener.boundPort, socket.localPort].map(
        (n) => `:${n?.toString(16).toUpperCase().padStart(4, '0')}`,
      );
      const table = async (): Promise<readonly string[][]> =>
        (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/));
      const serverSide = (rows: readonly string[][]): readonly string[] | undefined =>
        rows.find(([, local = '', peer = '']) => local.endsWith(ends[0] ?? '') && peer.endsWith(ends[1] ?? ''));
      const timer = await until('a keepalive timer runs', async () => {
        const shown = serverSide(await table())?.[5];
        return shown?.startsWith('02:') === true && shown;
      });
      assert.ok(Number.parseInt(timer.slice(3), 16) / 100 <= 15.5, `${timer} of a hundred a second`);
    } finally {
      socket.destroy();
    }
  });

  const REQUESTS = randomRuns(10_000);
  it(`answers ${REQUESTS} odd requests or hangs up, and lives on`, async () => {
    const host = 'Host: x\r\nConnection: close\r\n';
    const up = 'Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
    const forms = (n: number): string[] => [
      `GET /ok HTTP/1.1\r\n${host}\r\n`,
      `GET /up/${n} HTTP/1.1\r\n${up}\r\n`,
      `GET /ok HTTP/1.1\r\nHost: x\r\n\r\nGET /up/${n} HTTP/1.1\r\n${up}\r\nGET /ok HTTP/1.1\r\n${host}\r\n`,
      `GET /throws HTTP/1.1\r\n${up}\r\n`,
      `PATCH /${encodeURIComponent(randomBytes(9).toString('latin1'))} HTTP/1.1\r\n${host}\r\n`,
      `GET http://x/ok?a=%zz HTTP/1.1\r\n${host}\r\n`,
      `GET /ok HTTP/1.1\r\n\r\n`,
      `GET /ok HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      randomBytes(1 + (n % 80)).toString('latin1'),
    ];
    let answered = 0;
    for (let n = 0; n < REQUESTS; n += 50) {
      const texts = await Promise.all(
        Array.from({ length: 50 }, (_, i) => talk(Buffer.from(forms(n + i)[(n + i) % 9] ?? '', 'latin1'), 2000)),
      );
      answered += texts.filter((t) => t.startsWith('HTTP/1.1 ')).length;
    }
    assert.ok(answered > REQUESTS * 0.8, `${answered} answers`);
    assert.ok(upgrades > REQUESTS / 10);
    assert.match(await talk(Buffer.from(`GET /ok HTTP/1.1\r\n${host}\r\n`), 2000), /\r\n\r\n[^]*ok/);
  });
});
