// Lifecycle hooks: where they go, what counts as failure, and how it is told.
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { CriRuntime } from '../cri/services.ts';
import type { Container, LifecycleHandler, Pod } from '../core/pod.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { fakeInfra, recordingEvents, type SeenEvent } from '../../test/golden/fixture.ts';
import { hookHttp } from './hook-http.ts';
import { HookRunner } from './hooks.ts';

const pod: Pod = { metadata: { name: 'p', namespace: 'ns', uid: 'u' }, spec: { containers: [] } };
const signal = new AbortController().signal;

let server: Server;
let port = 0;
const requests: { url: string; headers: Record<string, unknown> }[] = [];
before(async () => {
  server = createServer((request, response) => {
    requests.push({ url: request.url ?? '', headers: request.headers });
    const to = { '/here': '/there', '/away': 'http://127.0.0.2:1/', '/round': '/round' }[request.url ?? ''];
    if (to !== undefined) return void response.writeHead(302, { Location: to }).end();
    response.writeHead(500).end('body');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
after(() => void server.close());

const events: SeenEvent[] = [];
const clock = new ManualClock();
const runner = (exitCode = 0): HookRunner => {
  const cri = {
    execSync: async () => ({ stdout: Buffer.from('out'), stderr: Buffer.from('err'), exitCode }),
  } as unknown as CriRuntime;
  const infra = { ...fakeInfra(clock, '/r'), http: hookHttp(clock) };
  return new HookRunner(
    { cri, events: recordingEvents(events), infra, nodeIps: () => ['127.0.0.1'] },
    { kubernetesVersion: '1.36' },
  );
};
const run = (handler: LifecycleHandler, container: Partial<Container> = {}, exitCode = 0): Promise<void> =>
  runner(exitCode).run(
    handler,
    { pod, container: { name: 'c', ...container }, containerId: 'id', podIps: ['127.0.0.1'] },
    signal,
  );

describe('hooks', () => {
  it('a command that fails', () =>
    assert.rejects(run({ exec: { command: ['sh', '-c', 'exit 7'] } }, {}, 7), {
      message:
        'Exec lifecycle hook ([sh -c exit 7]) for Container "c" in Pod "p_ns(u)" failed - error: command \'sh -c exit 7\' exited with 7: err, message: "outerr"',
    }));

  it('a request to the pod by port name; any status will do', async () => {
    const ports = [{ name: 'web', containerPort: port }];
    await run({ httpGet: { path: 'x?y=1', port: 'web', httpHeaders: [{ name: 'X-A', value: 'b' }] } }, { ports });
    const seen = requests.at(-1);
    assert.equal(seen?.url, '/x?y=1');
    assert.equal(seen?.headers['user-agent'], 'kube-lifecycle/1.36');
    assert.equal(seen?.headers['accept'], '*/*');
    assert.equal(seen?.headers['x-a'], 'b');
  });

  it('a pod on the host network is reached at the node', async () => {
    const onHost = { ...pod, spec: { ...pod.spec, hostNetwork: true } };
    const target = { pod: onHost, container: { name: 'c' }, containerId: 'id', podIps: [] };
    await runner().run({ httpGet: { path: '/host', port } }, target, signal);
    assert.equal(requests.at(-1)?.url, '/host');
  });

  it('its own headers replace the usual ones', async () => {
    const httpHeaders = [
      { name: 'user-agent', value: 'me' },
      { name: 'accept', value: '' },
    ];
    await run({ httpGet: { path: '/', port, httpHeaders } });
    assert.equal(requests.at(-1)?.headers['user-agent'], 'me');
    assert.equal(requests.at(-1)?.headers['accept'], undefined);
  });

  it('a header that is given twice is sent twice', async () => {
    const twice = ['a', 'b'].map((value) => ({ name: 'X-Twice', value }));
    await run({ httpGet: { path: '/', port, httpHeaders: [...twice, { name: 'Host', value: 'me.example' }] } });
    assert.equal(requests.at(-1)?.headers['x-twice'], 'a, b');
    assert.equal(requests.at(-1)?.headers['host'], 'me.example');
  });

  it('redirects are followed on the same host only, and not for ever', async () => {
    await run({ httpGet: { path: '/here', port } });
    assert.equal(requests.at(-1)?.url, '/there');
    await run({ httpGet: { path: '/away', port } });
    assert.equal(requests.at(-1)?.url, '/away');
    await assert.rejects(run({ httpGet: { path: '/round', port } }), /failed - error: stopped after 10 redirects$/);
  });

  it('HTTPS to a server that speaks HTTP is tried again, without credentials', async () => {
    const httpHeaders = [{ name: 'Authorization', value: 'secret' }];
    await run({ httpGet: { path: '/s', port, scheme: 'HTTPS', httpHeaders } });
    assert.equal(requests.at(-1)?.url, '/s');
    assert.equal(requests.at(-1)?.headers['authorization'], undefined);
    assert.equal(events.at(-1)?.reason, 'LifecycleHTTPFallback');
    assert.match(
      events.at(-1)?.message ?? '',
      /^request to HTTPS lifecycle hook 127\.0\.0\.1:\d+ got HTTP response, retry with HTTP succeeded$/,
    );
  });

  it('a server may end its lines as it likes', async () => {
    const loose = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\n\n'));
    });
    await new Promise<void>((resolve) => loose.listen(0, '127.0.0.1', resolve));
    try {
      await run({ httpGet: { path: '/', port: (loose.address() as AddressInfo).port } });
    } finally {
      loose.close();
    }
  });

  it('nobody listens', () =>
    assert.rejects(
      run({ httpGet: { path: '/x', port: 1 } }),
      /^KubeletError: HTTP lifecycle hook \(\/x\) for Container "c" in Pod "p_ns\(u\)" failed - error: .*ECONNREFUSED/,
    ));

  it('a port nobody named', () => assert.rejects(run({ httpGet: { port: 'nope' } }), /couldn't find port: "nope"/));

  it('sleep ends on time, or with its signal', async () => {
    let done = false;
    const sleeping = run({ sleep: { seconds: 3 } }).then(() => (done = true));
    await clock.advance(2999);
    assert.equal(done, false);
    await clock.advance(1);
    await sleeping;
    const stop = new AbortController();
    const cut = runner().run(
      { sleep: { seconds: 3 } },
      { pod, container: { name: 'c' }, containerId: 'id', podIps: [] },
      stop.signal,
    );
    stop.abort(new Error('enough'));
    await assert.rejects(cut, /enough/);
  });

  it('sockets and nothing at all are no hooks', async () => {
    await assert.rejects(run({ tcpSocket: { port: 1 } }), { message: 'invalid handler' });
    await assert.rejects(run({}), { message: 'invalid handler' });
  });
});
