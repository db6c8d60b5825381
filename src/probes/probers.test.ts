import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttp2, type ServerHttp2Stream } from 'node:http2';
import { createSecureServer as createHttp2Server } from 'node:http2';
import { createServer as createTlsServer } from 'node:https';
import {
  connect,
  createServer as createTcpServer,
  type AddressInfo,
  type Server as TcpServer,
  type Socket,
} from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Container, Probe } from '../core/pod.ts';
import { systemClock } from '../lib/clock.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { GrpcServer } from '../lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { expandCommand } from './exec-command.ts';
import type { ExecSync } from './exec-prober.ts';
import { Health, ServingStatus } from './gen/health.ts';
import { BrokenAnswer, type Answer } from './prober.ts';
import { containerProber } from './probers.ts';
import { until } from '../../test/harness/until.ts';

const { signal } = new AbortController();
const noExec: ExecSync = () => Promise.reject(new Error('not expected'));
const open: (Server | TcpServer)[] = [];
const accepted = new Set<Socket>();
after(() => {
  for (const server of open) server.close();
  // One that nobody read from does not notice that its peer has gone, and would keep the process.
  for (const socket of accepted) socket.destroy();
});

const listen = async (server: Server | TcpServer, port = 0): Promise<number> => {
  open.push(server);
  server.on('connection', (socket: Socket) => {
    accepted.add(socket);
    socket.once('close', () => accepted.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
};
const http = (handler: RequestListener): Promise<number> => listen(createServer(handler));
/** A port nobody listens on. */
const closedPort = async (): Promise<number> => {
  const server = createTcpServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
};

/** Who does not say how long waits long enough for a busy machine. */
const PATIENCE_S = 30;
const ask = (probe: Probe, container: Container = { name: 'c' }, execSync = noExec): Promise<Answer> =>
  containerProber(systemClock, execSync)(
    { probe, container, containerId: 'id', podIp: '127.0.0.1', timeoutMs: (probe.timeoutSeconds ?? PATIENCE_S) * 1000 },
    signal,
  );

test('http: status decides', async () => {
  const port = await http((req, res) => {
    res.statusCode = Number(req.url?.slice(1));
    res.end(`body of ${req.url}`);
  });
  const rows: [number, Answer][] = [
    [200, { result: 'success', output: 'body of /200' }],
    [204, { result: 'success', output: '' }],
    [304, { result: 'warning', output: 'Probe terminated redirects, Response body: ' }],
    [404, { result: 'failure', output: 'HTTP probe failed with statuscode: 404' }],
    [503, { result: 'failure', output: 'HTTP probe failed with statuscode: 503' }],
  ];
  for (const [status, wanted] of rows) assert.deepEqual(await ask({ httpGet: { path: `/${status}`, port } }), wanted);
});

test('http: headers', async () => {
  let seen: Record<string, unknown> = {};
  const port = await http((req, res) => {
    seen = req.headers;
    res.end();
  });
  await ask({ httpGet: { port } });
  assert.deepEqual(seen, {
    'user-agent': 'kube-probe/1.36',
    accept: '*/*',
    host: `127.0.0.1:${port}`,
    connection: 'close',
  });
  await ask({
    httpGet: {
      port,
      httpHeaders: [
        { name: 'Host', value: 'example.test' },
        { name: 'User-Agent', value: 'mine' },
        { name: 'Accept', value: '' },
        { name: 'X-A', value: '1' },
        { name: 'x-a', value: '2' },
      ],
    },
  });
  assert.deepEqual(seen, { host: 'example.test', 'user-agent': 'mine', 'x-a': '1, 2', connection: 'close' });
});

test('http: what HTTP forbids in a header is a failed probe, other text is sent as UTF-8', async () => {
  let seen: Record<string, unknown> = {};
  const port = await http((req, res) => {
    seen = req.headers;
    res.end();
  });
  const asked = (name: string, value: string): Promise<Answer> =>
    ask({ httpGet: { port, httpHeaders: [{ name, value }] } });
  for (const value of ['a\u0000b', 'a\r\nX: y', '\u007f'])
    assert.deepEqual(await asked('X-A', value), {
      result: 'failure',
      output: `Get "http://127.0.0.1:${port}/": net/http: invalid header field value for "x-a"`,
    });
  assert.match((await asked('a b', 'x')).output, /invalid header field name "a b"/);
  assert.equal((await asked('X-A', '€')).result, 'success');
  assert.equal(Buffer.from(String(seen['x-a']), 'latin1').toString('utf8'), '€');
  // The probe says how long its message is, not the pod.
  for (const name of ['Content-Length', 'Transfer-Encoding', 'Trailer', '__proto__', 'constructor'])
    assert.equal((await asked(name, '5')).result, 'success', name);
  assert.equal((await ask({ httpGet: { port, path: '/\ud800' } })).result, 'success');
});

test('a probed server sees an orderly end, never a reset', async () => {
  const ends: string[] = [];
  const port = await listen(
    createTcpServer((socket) => {
      socket.on('error', (err) => ends.push(err.message));
      socket.on('end', () => ends.push('end'));
      socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
      socket.resume();
    }),
  );
  for (const probe of [{ tcpSocket: { port } }, { httpGet: { port } }])
    assert.equal((await ask(probe)).result, 'success');
  await until('both ends', () => ends.length === 2);
  assert.deepEqual(ends, ['end', 'end']);
});

test('http: 200 probes leave no socket of ours waiting', async () => {
  const port = await http((_, res) => res.end('ok'));
  for (let i = 0; i < 200; i++) await ask({ httpGet: { port } });
  const ends = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const TIME_WAIT = '06';
  const left = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , peer, state]) => peer?.endsWith(ends) === true && state === TIME_WAIT);
  assert.ok(left.length < 5, `${left.length} in TIME_WAIT`);
});

test('http: named ports and paths', async () => {
  let path: string | undefined;
  const port = await http((req, res) => {
    path = req.url;
    res.end();
  });
  const container = { name: 'c', ports: [{ name: 'web', containerPort: port }] };
  assert.equal((await ask({ httpGet: { port: 'web', path: 'a b?q=ü#frag' } }, container)).result, 'success');
  assert.equal(path, '/a%20b?q=%C3%BC');
  await assert.rejects(ask({ httpGet: { port: 'nope' } }, container), {
    message: 'strconv.Atoi: parsing "nope": invalid syntax',
  });
});

test('http: redirects stay on the host', async () => {
  const port = await http((req, res) => {
    const to: Record<string, string> = { '/same': '/ok', '/away': 'http://localhost:1/x', '/loop': '/loop' };
    const location = to[req.url ?? ''];
    if (location !== undefined) res.writeHead(302, { location });
    res.end('here');
  });
  assert.deepEqual(await ask({ httpGet: { port, path: '/same' } }), { result: 'success', output: 'here' });
  assert.deepEqual(await ask({ httpGet: { port, path: '/away' } }), {
    result: 'warning',
    output: 'Probe terminated redirects, Response body: here',
  });
  assert.deepEqual(await ask({ httpGet: { port, path: '/loop' } }), {
    result: 'failure',
    output: `Get "http://127.0.0.1:${port}/loop": stopped after 10 redirects`,
  });
});

test('http: no more than 10 KiB are read', async () => {
  let closed = false;
  const port = await http((_, res) => {
    res.on('close', () => (closed = true));
    const write = (): void => {
      while (!res.destroyed && res.write('x'.repeat(4096)));
      if (!res.destroyed) res.once('drain', write);
    };
    write();
  });
  const { result, output } = await ask({ httpGet: { port } });
  assert.equal(result, 'success');
  assert.equal(output.length, 10 * 1024);
  await until('the connection is closed', () => closed);
});

test('http: failures in familiar words', async () => {
  const refused = await closedPort();
  assert.equal(
    (await ask({ httpGet: { port: refused, path: '/h' } })).output,
    `Get "http://127.0.0.1:${refused}/h": dial tcp 127.0.0.1:${refused}: connect: connection refused`,
  );
  const silent = await http(() => undefined);
  assert.equal(
    (await ask({ httpGet: { port: silent, path: '/' }, timeoutSeconds: 1 })).output,
    `Get "http://127.0.0.1:${silent}/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
  );
  const rude = await listen(createTcpServer((socket) => socket.once('data', () => socket.end())));
  assert.equal((await ask({ httpGet: { port: rude, path: '/' } })).output, `Get "http://127.0.0.1:${rude}/": EOF`);
  const plain = await http((_, res) => res.end());
  assert.equal(
    (await ask({ httpGet: { port: plain, path: '/', scheme: 'HTTPS' } })).output,
    `Get "https://127.0.0.1:${plain}/": http: server gave HTTP response to HTTPS client`,
  );
});

test('http: an answer that stops in the middle is no answer', async () => {
  const port = await http((_, res) => {
    res.writeHead(200, { 'content-length': '100' });
    res.write('half');
  });
  // Long enough for the head on a busy machine: what is tested is the deadline in the middle of the body.
  await assert.rejects(
    ask({ httpGet: { port }, timeoutSeconds: 1 }),
    (err) => err instanceof BrokenAnswer && /while reading body/.test(err.message),
  );
  const rude = await http((_, res) => {
    res.writeHead(200, { 'content-length': '100' });
    res.write('half', () => res.destroy());
  });
  await assert.rejects(
    ask({ httpGet: { port: rude } }),
    (err) => err instanceof BrokenAnswer && err.message === 'unexpected EOF',
  );
});

function certificateForTests(): { readonly key: Buffer; readonly cert: Buffer } {
  const dir = mkdtempSync(join(tmpdir(), 'probe-tls-'));
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  execFileSync('openssl', [...args, '-keyout', key, '-out', cert, '-subj', '/CN=other'], { stdio: 'ignore' });
  try {
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test('https: any certificate will do', async () => {
  const port = await listen(createTlsServer(certificateForTests(), (_, res) => res.end('ok')));
  assert.deepEqual(await ask({ httpGet: { port, scheme: 'HTTPS' } }), { result: 'success', output: 'ok' });
});

test('https: HTTP/2 with a server that speaks nothing else', async () => {
  const { cert, key } = certificateForTests();
  const seen: string[] = [];
  const server = createHttp2Server({ key, cert }, (req, res) => {
    seen.push(`${req.httpVersion} ${req.headers[':authority']} ${req.url} ${req.headers['x-probe']}`);
    if (req.url === '/moved') res.writeHead(302, { location: '/there' }).end();
    else if (req.url === '/busy') res.writeHead(503).end('busy');
    else if (req.url === '/long') res.end('x'.repeat(20_000));
    else if (req.url === '/gone') req.stream.session?.destroy();
    else res.end('fine');
  });
  const port = await listen(server);
  const get = (path: string): ReturnType<typeof ask> =>
    ask({ httpGet: { port, path, scheme: 'HTTPS', httpHeaders: [{ name: 'X-Probe', value: 'v' }] } });
  assert.deepEqual(await get('/moved'), { result: 'success', output: 'fine' });
  assert.deepEqual(seen, [`2.0 127.0.0.1:${port} /moved v`, `2.0 127.0.0.1:${port} /there v`]);
  assert.equal((await get('/busy')).output, 'HTTP probe failed with statuscode: 503');
  assert.equal((await get('/long')).output.length, 10_240);
  assert.equal((await get('/gone')).output, `Get "https://127.0.0.1:${port}/gone": EOF`);
});

test('tcp', async () => {
  const port = await listen(createTcpServer((socket) => socket.on('error', () => undefined)));
  assert.deepEqual(await ask({ tcpSocket: { port } }), { result: 'success', output: '' });
  const refused = await closedPort();
  assert.deepEqual(await ask({ tcpSocket: { port: refused } }), {
    result: 'failure',
    output: `dial tcp 127.0.0.1:${refused}: connect: connection refused`,
  });
});

test('a pod without an address is not mistaken for the node', async () => {
  for (const probe of [{ httpGet: { port: 80 } }, { tcpSocket: { port: 80 } }, { grpc: { port: 80 } }])
    await assert.rejects(
      containerProber(systemClock, noExec)(
        { probe, container: { name: 'c' }, containerId: 'i', podIp: '', timeoutMs: 100 },
        signal,
      ),
      /no IP address yet/,
    );
});

test('exec: exit code, output, timeout, errors', async () => {
  const exec =
    (exitCode: number, stdout = '', stderr = ''): ExecSync =>
    () =>
      Promise.resolve({ exitCode, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) });
  const probe = { exec: { command: ['check', '$(A)'] } };
  assert.deepEqual(await ask(probe, { name: 'c' }, exec(0, 'out', 'err')), { result: 'success', output: 'outerr' });
  assert.deepEqual(await ask(probe, { name: 'c' }, exec(1)), { result: 'failure', output: '' });
  assert.equal((await ask(probe, { name: 'c' }, exec(1, 'x'.repeat(20_000), 'e'))).output.length, 10 * 1024);
  const slow: ExecSync = () => Promise.reject(new GrpcError(GrpcCode.DeadlineExceeded, 'too slow'));
  const env = [{ name: 'A', value: 'v' }];
  assert.deepEqual(await ask({ ...probe, timeoutSeconds: 1 }, { name: 'c', env }, slow), {
    result: 'failure',
    output: 'command timed out: "check v" timed out after 1s',
  });
  let tries = 0;
  const broken: ExecSync = () => {
    tries++;
    return Promise.reject(new KubeletError('unavailable', 'runtime gone'));
  };
  await assert.rejects(ask(probe, { name: 'c' }, broken), /runtime gone/);
  assert.equal(tries, 3);
});

test('exec: only so many at a time', async () => {
  let [now, most] = [0, 0];
  const exec: ExecSync = async () => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve, 5));
    now--;
    return { exitCode: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  };
  const prober = containerProber(systemClock, exec, 3);
  const target = {
    probe: { exec: { command: ['x'] } },
    container: { name: 'c' },
    containerId: 'i',
    podIp: '',
    timeoutMs: 1,
  };
  await Promise.all(Array.from({ length: 20 }, () => prober(target, signal)));
  assert.equal(most, 3);
});

test('exec: commands that hang do not keep others from running', async () => {
  const clock = new ManualClock();
  const exec: ExecSync = (id, _command, _seconds, own) =>
    id === 'hung'
      ? new Promise((_resolve, reject) => own.addEventListener('abort', () => reject(new Error('called off'))))
      : Promise.resolve({ exitCode: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) });
  const prober = containerProber(clock, exec, 2);
  const target = (containerId: string) => ({
    probe: { exec: { command: ['x'] } },
    container: { name: 'c' },
    containerId,
    podIp: '',
    timeoutMs: 3_600_000,
  });
  const stop = new AbortController();
  const hung = Array.from({ length: 4 }, () => prober(target('hung'), stop.signal));
  const all = Promise.allSettled(hung);
  const good = prober(target('good'), signal);
  for (let moments = 0; moments < 4; moments++) await clock.advance(250);
  assert.deepEqual(await good, { result: 'success', output: '' });
  stop.abort();
  assert.deepEqual(new Set((await all).map(({ status }) => status)), new Set(['rejected']));
  assert.equal(clock.pending, 0);
});

test('exec: variables', () => {
  const container = { name: 'c', env: [{ name: 'A', value: '1' }, { name: 'B' }] };
  assert.deepEqual(expandCommand(['$(A)$(B)', '$(C)', '$$(A)', '$A', 'a$(A)b'], container), [
    '1',
    '$(C)',
    '$(A)',
    '$A',
    'a1b',
  ]);
});

/** The health service behind a TCP port. */
async function healthServer(
  check: () => { status: ServingStatus },
  wantedPort = 0,
): Promise<{ port: number; close: () => Promise<void> }> {
  const dir = mkdtempSync(join(tmpdir(), 'probe-grpc-'));
  const socketPath = join(dir, 's');
  const server = new GrpcServer();
  server.unary(Health.check, () => Promise.resolve().then(check));
  await server.listen(socketPath);
  const port = await listen(
    createTcpServer((tcp) => {
      const unix = connect(socketPath);
      tcp.on('error', () => unix.destroy());
      unix.on('error', () => tcp.destroy());
      tcp.pipe(unix).pipe(tcp);
    }),
    wantedPort,
  );
  return {
    port,
    close: async () => {
      await server.close();
      rmSync(dir, { recursive: true });
    },
  };
}

test('grpc: an answer that is too long is not waited for', async () => {
  let sent = 0;
  const server = createHttp2();
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    // The head of a message of 63 MiB, then as much as is taken.
    stream.write(Buffer.from([0, 0x03, 0xf0, 0, 0]));
    const more = (): void => {
      while (!stream.destroyed && sent < 63 * 1024 * 1024) {
        sent += 65_536;
        if (!stream.write(Buffer.alloc(65_536))) break;
      }
    };
    stream.on('drain', more);
    stream.on('error', () => undefined);
    more();
  });
  server.on('session', (session) => session.on('error', () => undefined));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { output } = await ask({ grpc: { port: (server.address() as AddressInfo).port }, timeoutSeconds: 5 });
  assert.match(output, /received message larger than max/);
  assert.ok(sent < 4 * 1024 * 1024, `${sent} bytes taken`);
  server.close();
});

test('grpc', async () => {
  const rows: [() => { status: ServingStatus }, Answer][] = [
    [() => ({ status: ServingStatus.SERVING }), { result: 'success', output: 'service healthy' }],
    [
      () => ({ status: ServingStatus.NOT_SERVING }),
      { result: 'failure', output: 'service unhealthy (responded with "NOT_SERVING")' },
    ],
    [
      () => {
        throw new GrpcError(GrpcCode.Unimplemented, 'unknown service');
      },
      {
        result: 'failure',
        output:
          'error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service',
      },
    ],
  ];
  for (const [handler, wanted] of rows) {
    const { port, close } = await healthServer(handler);
    assert.deepEqual(await ask({ grpc: { port, service: 's' } }), wanted);
    await close();
  }
  const notConnected = (port: number, within: string): Answer => ({
    result: 'failure',
    output: `timeout: failed to connect service "127.0.0.1:${port}" within ${within}: context deadline exceeded`,
  });
  const refused = await closedPort();
  assert.deepEqual(await ask({ grpc: { port: refused }, timeoutSeconds: 1 }), notConnected(refused, '1s'));
  const silent = await listen(createTcpServer((socket) => socket.on('error', () => undefined)));
  assert.deepEqual(await ask({ grpc: { port: silent }, timeoutSeconds: 0.1 }), notConnected(silent, '100ms'));
});

test('grpc: a server is tried again while there is time', async (t) => {
  const clock = new ManualClock();
  const port = await closedPort();
  const target = { container: { name: 'c' }, containerId: 'id', podIp: '127.0.0.1', probe: { grpc: { port } } };
  const asking = (timeoutMs: number, stop = signal): Promise<Answer> =>
    containerProber(clock, noExec)({ ...target, timeoutMs }, stop);
  const { output } = await asking(1000);
  assert.match(output, /^timeout: failed to connect service .* within 1s/, 'the next try would come too late');

  const stop = new AbortController();
  const calledOff = asking(3_600_000, stop.signal);
  await until('it waits', () => clock.pending > 0);
  stop.abort();
  await assert.rejects(calledOff);
  await until('nothing is left', () => clock.pending === 0);

  let answer: Answer | undefined;
  const answered = asking(3_600_000).then((given) => (answer = given));
  await until('it waits', () => clock.pending > 0);
  const { close } = await healthServer(() => ({ status: ServingStatus.SERVING }), port);
  t.after(close);
  await until('it asks again', async () => {
    await clock.advance(1000);
    return answer !== undefined;
  });
  assert.deepEqual(await answered, { result: 'success', output: 'service healthy' });
});
