// The client on real sockets: TLS with a private authority, rotation, repeats, credentials that change, a proxy.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { after, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { systemClock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import { issueCertificate, selfSignedAuthority } from '../lib/x509/certificate.ts';
import { newKeyPair, privateKeyPem } from '../lib/x509/keys.ts';
import { isGone } from './api-error.ts';
import { KubeClient, type ClientOptions } from './client.ts';
import { credentialsFor, type Credentials } from './credentials.ts';
import { resolveKubeconfig, type ClusterAccess } from './kubeconfig.ts';
import { NODES, PODS } from './resources.ts';
import { Transport } from './transport.ts';

const clock = systemClock;
const log = silentLogger;
const signal = new AbortController().signal;
const validity = { notBeforeMs: Date.now() - 3_600_000, notAfterMs: Date.now() + 3_600_000 };
const authorityKeys = newKeyPair();
const ca = selfSignedAuthority({ commonName: 'test-ca' }, authorityKeys, validity);
const issue = (commonName: string): { cert: string; key: string } => {
  const keys = newKeyPair();
  const cert = issueCertificate(
    { certificatePem: ca, privateKey: authorityKeys.privateKey },
    {
      ...validity,
      subject: { commonName },
      publicKey: keys.publicKey,
      usages: ['serverAuth', 'clientAuth'],
      dnsNames: ['api.test'],
      ipAddresses: ['127.0.0.1'],
    },
  );
  return { cert, key: privateKeyPem(keys.privateKey) };
};

type Handler = (req: http.IncomingMessage, res: http.ServerResponse, body: string) => void;
let handler: Handler = (_req, res) => res.end('{}');
let connections = 0;
const listener: http.RequestListener = (req, res) => {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => handler(req, res, Buffer.concat(chunks).toString()));
};
const secure = https.createServer({ ...issue('api'), ca, requestCert: true, rejectUnauthorized: false }, listener);
secure.on('secureConnection', () => connections++);
let dir = '';
let server = '';

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'kube-client-'));
  secure.listen(0, '127.0.0.1');
  await once(secure, 'listening');
  server = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`;
});
after(async () => {
  secure.closeAllConnections();
  secure.close();
  await rm(dir, { recursive: true });
});

function open(
  more: Partial<ClusterAccess> = {},
  credentials?: Credentials,
  options: ClientOptions = {},
): { client: KubeClient; transport: Transport } {
  const access: ClusterAccess = { server, ca, insecure: false, auth: {}, ...more };
  const own = credentials ?? credentialsFor(access, { clock, log });
  const transport = new Transport({ clock, credentials: own }, access, { userAgent: 'kubelet/test' });
  const client = new KubeClient({ clock, transport, limiter: new TokenBucket(clock, 0, 0) }, options);
  return { client, transport };
}
const peerOf = (req: http.IncomingMessage): string =>
  String((req.socket as TLSSocket).getPeerCertificate().subject?.CN ?? 'nobody');
const status = (res: http.ServerResponse, code: number, reason: string, headers: Record<string, string> = {}): void => {
  res.writeHead(code, headers);
  res.end(JSON.stringify({ kind: 'Status', code, reason, message: `${reason} it is` }));
};

describe('KubeClient', () => {
  it('keeps connections and sends what the API expects', async () => {
    const { client, transport } = open();
    const seen: string[] = [];
    handler = (req, res, body) => {
      seen.push(`${req.method} ${req.url} ${req.headers['content-type'] ?? ''} ${req.headers['user-agent']} ${body}`);
      res.end('{"metadata":{"name":"x"}}');
    };
    const from = connections;
    await client.get(PODS, { namespace: 'a b', name: 'p/q', query: { x: '1=2' } }, signal);
    await client.patch(PODS, { namespace: 'n', name: 'p', subresource: 'status' }, { a: 1 }, signal);
    await client.delete(PODS, { namespace: 'n', name: 'p' }, { gracePeriodSeconds: 0 }, signal);
    assert.deepEqual(seen, [
      'GET /api/v1/namespaces/a%20b/pods/p%2Fq?x=1%3D2  kubelet/test ',
      'PATCH /api/v1/namespaces/n/pods/p/status application/strategic-merge-patch+json kubelet/test {"a":1}',
      'DELETE /api/v1/namespaces/n/pods/p application/json kubelet/test {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}',
    ]);
    assert.equal(connections - from, 1);
    transport.resetConnections();
  });

  it('maps answers to kinds with the server’s message', async () => {
    const { client, transport } = open();
    const kinds: [number, string, string][] = [
      [404, 'NotFound', 'notFound'],
      [409, 'AlreadyExists', 'exists'],
      [409, 'Conflict', 'conflict'],
      [403, 'Forbidden', 'denied'],
      [422, 'Invalid', 'invalid'],
      [500, 'InternalError', 'internal'],
      [503, 'ServiceUnavailable', 'unavailable'],
      [429, 'TooManyRequests', 'exhausted'],
      [504, 'Timeout', 'deadline'],
    ];
    for (const [code, reason, kind] of kinds) {
      handler = (_req, res) => status(res, code, reason);
      const failed = client.get(NODES, { name: 'n' }, signal);
      await assert.rejects(failed, (err) => isFault(err) && err.kind === kind && err.message === `${reason} it is`);
    }
    handler = (_req, res) => status(res, 410, 'Expired');
    await assert.rejects(client.list(NODES, {}, signal), isGone);
    handler = (_req, res) => res.writeHead(502).end('<html>bad gateway</html>');
    await assert.rejects(client.get(NODES, { name: 'n' }, signal), /bad gateway/);
    handler = (_req, res) => res.end('not json');
    await assert.rejects(client.get(NODES, { name: 'n' }, signal), /not JSON/);
    transport.resetConnections();
  });

  it('repeats where Retry-After asks for it', async () => {
    const { client, transport } = open();
    let calls = 0;
    handler = (_req, res) => {
      if (++calls < 3) status(res, calls === 1 ? 429 : 503, 'Busy', { 'Retry-After': '0' });
      else res.end('{"metadata":{"name":"ok"}}');
    };
    assert.equal((await client.get(NODES, { name: 'n' }, signal)).metadata.name, 'ok');
    assert.equal(calls, 3);
    transport.resetConnections();
  });

  it('a slow server and a refused connection end in time, with their kind', async () => {
    const slow = open({}, undefined, { timeoutMs: 100 });
    handler = (_req, res) => res.write('{');
    await assert.rejects(slow.client.get(NODES, { name: 'n' }, signal), (err) => isFault(err, 'deadline'));
    slow.transport.resetConnections();
    const refused = open({ server: 'https://127.0.0.1:1' });
    await assert.rejects(refused.client.get(NODES, { name: 'n' }, signal), (err) => isFault(err, 'unavailable'));
    const end = new AbortController();
    const cancelled = open().client.get(NODES, { name: 'n' }, end.signal);
    end.abort(new Error('stop'));
    await assert.rejects(cancelled, /stop/);
  });

  it('a kept connection that the server closed is no failure', async () => {
    const { client, transport } = open();
    handler = (_req, res) => res.end('{}');
    await client.get(NODES, { name: 'n' }, signal);
    secure.closeAllConnections();
    await client.get(NODES, { name: 'n' }, signal);
    transport.resetConnections();
  });

  it('checks the server: authority, name, and lets insecure through', async () => {
    handler = (_req, res) => res.end('{}');
    const get = async (more: Partial<ClusterAccess>): Promise<unknown> => {
      const { client, transport } = open(more);
      return await client.get(NODES, { name: 'n' }, signal).finally(() => transport.resetConnections());
    };
    const other = selfSignedAuthority({ commonName: 'other' }, newKeyPair(), validity);
    await assert.rejects(get({ ca: other }), (err) => isFault(err, 'unavailable'));
    await assert.rejects(get({ tlsServerName: 'wrong.test' }), /Hostname|altnames/);
    await get({ tlsServerName: 'api.test' });
    await get({ ca: other, insecure: true });
  });

  it('a rotated certificate is used at once, and ends the watches of the old one', async () => {
    let identity = { tls: issue('first') };
    const credentials: Credentials = { current: () => Promise.resolve(identity), refused: () => false };
    const { client, transport } = open({}, credentials);
    const peers: string[] = [];
    handler = (req, res) => {
      peers.push(peerOf(req));
      if (req.url?.includes('watch=true') === true) res.write('{"type":"BOOKMARK","object":{"metadata":{}}}\n');
      else res.end('{}');
    };
    const watch = client.watch(NODES, {}, 60_000, signal);
    await watch.next();
    const ended = assert.rejects(watch.next(), (err) => isFault(err, 'unavailable'));
    const told: number[] = [];
    client.renewal.onRenewed(() => told.push(client.renewal.count));
    client.recovery.onRecovered(() => told.push(-1));
    identity = { tls: issue('second') };
    await client.get(NODES, { name: 'n' }, signal);
    await ended;
    assert.deepEqual(peers, ['first', 'second']);
    await transport.credentialsChanged(signal);
    identity = { tls: issue('third') };
    await transport.credentialsChanged(signal);
    await client.get(NODES, { name: 'n' }, signal);
    assert.deepEqual(peers, ['first', 'second', 'third']);
    assert.deepEqual(told, [1, 2], 'that was no outage');
    transport.resetConnections();
  });

  it('a watch has a connection of its own, which ends with it', async () => {
    const { client, transport } = open();
    const closed: Promise<unknown>[] = [];
    handler = (req, res) => {
      if (req.url?.includes('watch=true') === true) closed.push(once(req.socket, 'close'));
      res.end('{"type":"BOOKMARK","object":{"metadata":{}}}\n');
    };
    const from = connections;
    for (let i = 0; i < 3; i++)
      for await (const event of client.watch(PODS, {}, 10_000, signal)) assert.equal(event.type, 'BOOKMARK');
    await client.get(PODS, { namespace: 'n', name: 'p' }, signal);
    await Promise.all(closed);
    assert.deepEqual([closed.length, connections - from], [3, 4]);
    transport.resetConnections();
  });

  it('resetting the connections ends a watch that would hang', async () => {
    const { client, transport } = open();
    handler = (_req, res) => res.write('{"type":"BOOKMARK","object":{"metadata":{}}}\n');
    const watch = client.watch(NODES, {}, 60_000, signal);
    await watch.next();
    const ended = assert.rejects(watch.next(), (err) => isFault(err, 'unavailable'));
    transport.resetConnections();
    await ended;
  });

  it('a refusal of a watch that never comes to its end is not waited for', async () => {
    const { transport } = open();
    const manual = new ManualClock();
    const client = new KubeClient({ clock: manual, transport, limiter: new TokenBucket(manual, 0, 0) });
    const answered = Promise.withResolvers<void>();
    handler = (_req, res) => {
      res.writeHead(503);
      res.write('{', () => answered.resolve());
    };
    const watch = client.watch(PODS, {}, 60_000, signal);
    const refused = assert.rejects(watch.next(), (err) => isFault(err, 'deadline'));
    await answered.promise;
    await manual.advance(60_000);
    await refused;
    transport.resetConnections();
  });

  it('reads a token file again when the server refuses its token', async () => {
    const tokenFile = join(dir, 'token');
    await writeFile(tokenFile, 'old\n');
    const { client, transport } = open({ auth: { tokenFile, token: 'inline' } });
    handler = (req, res) => {
      if (req.headers.authorization === 'Bearer new') res.end('{}');
      else status(res, 401, 'Unauthorized');
    };
    await assert.rejects(client.get(NODES, { name: 'n' }, signal), (err) => isFault(err, 'denied'));
    await writeFile(tokenFile, 'new\n');
    await client.get(NODES, { name: 'n' }, signal);
    transport.resetConnections();
  });

  it('asks an exec plugin, keeps its answer, and asks again after a refusal', async () => {
    const plugin = join(dir, 'plugin.sh');
    const count = join(dir, 'count');
    const answer = `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t'"$N"'"}}`;
    await writeFile(
      plugin,
      `#!/bin/sh\necho x >> ${count}\nN=$(wc -l < ${count})\n[ "$EXTRA" = e ] || exit 3\necho '${answer}'\n`,
    );
    await chmod(plugin, 0o755);
    const user = {
      exec: {
        apiVersion: 'client.authentication.k8s.io/v1',
        command: './plugin.sh',
        interactiveMode: 'Never',
        env: [{ name: 'EXTRA', value: 'e' }],
      },
    };
    const config = stringify({
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
      clusters: [{ name: 'k', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
      users: [{ name: 'u', user }],
    });
    const { client, transport } = open(await resolveKubeconfig(config, join(dir, 'kubeconfig')));
    const seen: string[] = [];
    handler = (req, res) => {
      seen.push(req.headers.authorization ?? '');
      if (req.headers.authorization === 'Bearer t1' && seen.length === 3) status(res, 401, 'Unauthorized');
      else res.end('{}');
    };
    for (let i = 0; i < 3; i++) await client.get(NODES, { name: 'n' }, signal);
    assert.deepEqual(seen, ['Bearer t1', 'Bearer t1', 'Bearer t1', 'Bearer t2']);
    transport.resetConnections();
  });

  it('goes through a proxy', async () => {
    const asked: string[] = [];
    const proxy = http.createServer();
    proxy.on('connect', (req, socket) => {
      asked.push(req.url ?? '');
      const [host = '', port = ''] = (req.url ?? '').split(':');
      const up = net.connect(Number(port), host, () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        up.pipe(socket);
        socket.pipe(up);
      });
      up.on('error', () => socket.destroy());
      socket.on('error', () => up.destroy());
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const { client, transport } = open({ proxyUrl: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
    handler = (_req, res) => res.end('{}');
    await client.get(NODES, { name: 'n' }, signal);
    assert.deepEqual(asked, [server.replace('https://', '')]);
    transport.resetConnections();
    proxy.close();
  });
});

describe('resolveKubeconfig', () => {
  const text = (more: object): string =>
    stringify({
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'k', user: 'u', namespace: 'ns' } }],
      clusters: [{ name: 'k', cluster: { server: 'https://h:6443/', 'tls-server-name': 's' } }],
      users: [
        { name: 'u', user: { 'client-certificate': 'c.pem', 'client-key': '/k.pem', username: 'a', password: 'b' } },
      ],
      ...more,
    });

  it('resolves files against its own folder', async () => {
    assert.deepEqual(await resolveKubeconfig(text({}), '/etc/kube/config'), {
      server: 'https://h:6443',
      insecure: false,
      tlsServerName: 's',
      namespace: 'ns',
      auth: { basic: { username: 'a', password: 'b' }, certFile: '/etc/kube/c.pem', keyFile: '/k.pem' },
    });
  });

  const V1 = 'client.authentication.k8s.io/v1';
  const plugin = (exec: object): object => ({ users: [{ name: 'u', user: { exec } }] });
  const bad: [string, object, RegExp][] = [
    ['no context', { 'current-context': '' }, /no current-context/],
    ['an unknown context', { 'current-context': 'x' }, /context "x" does not exist/],
    ['an unknown user', { users: [] }, /user "u" does not exist/],
    ['no server', { clusters: [{ name: 'k', cluster: {} }] }, /no valid server/],
    [
      'a certificate without a key',
      { users: [{ name: 'u', user: { 'client-certificate': '/c' } }] },
      /client-key must be/,
    ],
    ['a plugin without a command', plugin({ apiVersion: V1 }), /command must be specified for u to use exec/],
    ['a plugin of no version', plugin({ command: 'p' }), /apiVersion must be specified for u to use exec/],
    [
      'a plugin of another version',
      plugin({ command: 'p', apiVersion: 'x/v1alpha1' }),
      /invalid apiVersion "x\/v1alpha1"/,
    ],
    ['a plugin that does not say how it asks', plugin({ command: 'p', apiVersion: V1 }), /interactiveMode must be/],
    [
      'a plugin that asks in no known way',
      plugin({ command: 'p', apiVersion: V1, interactiveMode: 'Maybe' }),
      /"Maybe"/,
    ],
    ['a plugin that needs a terminal', plugin({ command: 'p', apiVersion: V1, interactiveMode: 'Always' }), /terminal/],
    [
      'a CA that would not be looked at',
      {
        clusters: [
          { name: 'k', cluster: { server: 'h', 'certificate-authority': 'c', 'insecure-skip-tls-verify': true } },
        ],
      },
      /specifying a root certificates file with the insecure flag is not allowed/,
    ],
    [
      'a SOCKS proxy',
      { clusters: [{ name: 'k', cluster: { server: 'https://h', 'proxy-url': 'socks5://p' } }] },
      /proxy-url/,
    ],
  ];
  for (const [name, more, message] of bad) {
    it(`refuses ${name}`, async () => assert.rejects(resolveKubeconfig(text(more), '/x'), message));
  }
  const hosts: [object, object, string][] = [
    [{ server: 'h:6443' }, {}, 'http://h:6443'],
    [{ server: 'h:6443', 'insecure-skip-tls-verify': true }, {}, 'https://h:6443'],
    [{ server: '10.0.0.1' }, { 'client-certificate': 'c', 'client-key': 'k' }, 'https://10.0.0.1'],
    [{ server: 'http://h:1' }, { 'client-certificate': 'c', 'client-key': 'k' }, 'http://h:1'],
  ];
  for (const [cluster, user, server] of hosts)
    it(`reaches ${server} by ${JSON.stringify({ ...cluster, ...user })}`, async () => {
      const more = { clusters: [{ name: 'k', cluster }], users: [{ name: 'u', user }] };
      assert.equal((await resolveKubeconfig(text(more), '/x')).server, server);
    });
  it('a plugin is told what the cluster says to plugins', async () => {
    const exec = { command: 'p', apiVersion: V1, interactiveMode: 'Never', provideClusterInfo: true };
    const extensions = [
      { name: 'somebody.else', extension: { x: 1 } },
      { name: 'client.authentication.k8s.io/exec', extension: { audience: 'a' } },
    ];
    const clusters = [{ name: 'k', cluster: { server: 'https://h', extensions } }];
    const { auth } = await resolveKubeconfig(text({ ...plugin(exec), clusters }), '/x');
    assert.deepEqual(auth.exec?.clusterConfig, { audience: 'a' });
  });
  it('a plugin of v1beta1 need not say that it asks nobody', async () => {
    const exec = { command: 'p', apiVersion: 'client.authentication.k8s.io/v1beta1' };
    assert.equal((await resolveKubeconfig(text(plugin(exec)), '/x')).auth.exec?.command, 'p');
  });
  it('refuses what is no YAML', async () => assert.rejects(resolveKubeconfig('a: [', '/x'), /kubeconfig \/x/));
});
