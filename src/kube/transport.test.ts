// The transport on real sockets against a server that speaks HTTP/2: how many connections there are, and what happens when
// streams or connections are refused, reset, closed or fall silent.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http2, { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import net, { type AddressInfo, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { test, type TestContext } from 'node:test';
import { systemClock, type Clock } from '../lib/clock.ts';
import { isFault } from '../lib/errors.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { TokenBucket } from '../lib/token-bucket.ts';
import { issueCertificate, selfSignedAuthority } from '../lib/x509/certificate.ts';
import { newKeyPair, privateKeyPem } from '../lib/x509/keys.ts';
import { freePort } from '../../test/harness/ports.ts';
import { until } from '../../test/harness/until.ts';
import { isNoRoom } from './api-error.ts';
import { KubeClient, type ClientOptions } from './client.ts';
import type { Credentials, Identity } from './credentials.ts';
import { MAX_ABSENT_MS } from './dial-gate.ts';
import { CONFIG_MAPS, LEASES, NODES, PODS } from './resources.ts';
import { Transport } from './transport.ts';

const never = new AbortController().signal;
const validity = { notBeforeMs: Date.now() - 3_600_000, notAfterMs: Date.now() + 3_600_000 };
const authority = newKeyPair();
const ca = selfSignedAuthority({ commonName: 'test-ca' }, authority, validity);
const issue = (commonName: string): { cert: string; key: string } => {
  const keys = newKeyPair();
  const usages = ['serverAuth', 'clientAuth'] as const;
  const cert = issueCertificate(
    { certificatePem: ca, privateKey: authority.privateKey },
    { ...validity, subject: { commonName }, publicKey: keys.publicKey, usages, ipAddresses: ['127.0.0.1'] },
  );
  return { cert, key: privateKeyPem(keys.privateKey) };
};
const serving = issue('api');

type Answer = (stream: ServerHttp2Stream, path: string, body: string, method: string) => void;
const json =
  (value: unknown): Answer =>
  (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/json' });
    stream.end(JSON.stringify(value));
  };
const BOOKMARK = '{"type":"BOOKMARK","object":{"metadata":{}}}\n';
const watching: Answer = (stream) => {
  stream.respond({ ':status': 200 });
  stream.write(BOOKMARK);
};

class Server {
  answer: Answer;
  readonly sockets = new Set<TLSSocket>();
  readonly sessions = new Set<ServerHttp2Session>();
  readonly paths: string[] = [];
  connections = 0;
  url = '';
  readonly #server: http2.Http2SecureServer;

  constructor(answer: Answer, settings: http2.Settings = {}) {
    this.answer = answer;
    const options = { ...serving, ca, requestCert: true, rejectUnauthorized: false, settings };
    this.#server = http2.createSecureServer(options);
    this.#server.on('secureConnection', (socket) => {
      this.connections++;
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => this.sockets.delete(socket));
    });
    this.#server.on('session', (session) => {
      this.sessions.add(session);
      session.on('error', () => undefined);
      session.once('close', () => this.sessions.delete(session));
    });
    this.#server.on('stream', (stream: ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
      const path = String(headers[':path']);
      this.paths.push(path);
      stream.on('error', () => undefined);
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        if (stream.destroyed) return;
        this.answer(stream, path, Buffer.concat(chunks).toString(), String(headers[':method']));
      });
    });
  }

  async start(port = 0): Promise<this> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    if (this.#server.listening) await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** Passes bytes on between client and server until it is frozen: connections stand and nothing comes through. */
class Wire {
  readonly sockets: Socket[] = [];
  /** Towards the server, and back. */
  bytes = { up: 0, down: 0 };
  readonly #server: net.Server;
  #isClosed = false;

  constructor(port: number) {
    this.#server = net.createServer((near) => {
      const far = net.connect(port, '127.0.0.1');
      this.sockets.push(near, far);
      near.on('data', ({ length }) => (this.bytes = { ...this.bytes, up: this.bytes.up + length }));
      far.on('data', ({ length }) => (this.bytes = { ...this.bytes, down: this.bytes.down + length }));
      if (this.#isClosed) for (const socket of [near, far]) socket.pause();
      if (this.#isClosed) return;
      for (const socket of [near, far]) socket.on('error', () => undefined);
      near.pipe(far).once('close', () => near.destroy());
      far.pipe(near).once('close', () => far.destroy());
    });
  }

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Freezes what stands now; connections made later are as usual, or silent as well. */
  freeze(what: 'standing' | 'all' = 'standing'): void {
    this.#isClosed = what === 'all';
    for (const socket of this.sockets) socket.pause();
  }

  /** What stood goes on; what came meanwhile was never joined. */
  thaw(): void {
    this.#isClosed = false;
    for (const socket of this.sockets) socket.resume();
  }

  stop(): void {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
  }
}

type World = {
  wire: Wire;
  server: Server;
  transport: Transport;
  client: (options?: ClientOptions) => KubeClient;
  identity: { current: Identity };
};

async function open(
  t: TestContext,
  answer: Answer,
  more: { settings?: http2.Settings; clock?: Clock; port?: number } = {},
): Promise<World> {
  const server = await new Server(answer, more.settings).start(more.port);
  const clock = more.clock ?? systemClock;
  const identity: { current: Identity } = { current: {} };
  const credentials: Credentials = { current: () => Promise.resolve(identity.current), refused: () => false };
  const wire = new Wire(Number(new URL(server.url).port));
  const access = { server: await wire.start(), ca, insecure: false, auth: {} };
  const transport = new Transport({ clock, credentials }, access, { userAgent: 'test' });
  t.after(async () => {
    transport.resetConnections();
    wire.stop();
    await server.stop();
  });
  const client = (options: ClientOptions = {}): KubeClient =>
    new KubeClient({ clock, transport, limiter: new TokenBucket(clock, 0, 0) }, options);
  return { wire, server, transport, client, identity };
}

/** A watch that has begun; `ended` is how it ends. */
async function begun(client: KubeClient, signal = never): Promise<{ ended: Promise<unknown> }> {
  const watch = client.watch(CONFIG_MAPS, { namespace: 'n' }, 600_000, signal);
  await watch.next();
  const ended = watch.next().then(
    (next) => next,
    (err: unknown) => err,
  );
  return { ended };
}

test('300 watches, requests and heartbeats share three connections of 100 streams', async (t) => {
  const mixed: Answer = (stream, path, body, method) =>
    (path.includes('watch=true') ? watching : json({}))(stream, path, body, method);
  const { server, client } = await open(t, mixed, { settings: { maxConcurrentStreams: 100 } });
  const stop = new AbortController();
  const objects = client({ optionalWatches: true });
  const results = await Promise.allSettled(Array.from({ length: 300 }, () => begun(objects, stop.signal)));
  const refused = results.filter((r) => r.status === 'rejected');
  assert.ok(refused.every((r) => isNoRoom(r.reason)));
  assert.equal(results.length - refused.length, 180, 'two connections, some streams of each kept free');
  for (let i = 0; i < 4; i++) await begun(client(), stop.signal);
  await client().get(PODS, { namespace: 'n', name: 'p' }, never);
  await client({ lane: 'heartbeat' }).replace(LEASES, { namespace: 'n', name: 'l' }, {}, never);
  assert.equal(server.connections, 3);
  stop.abort();
});

test('where the server takes them, all watches are on one connection', async (t) => {
  const { server, client } = await open(t, watching, { settings: { maxConcurrentStreams: 1000 } });
  await client().watch(PODS, {}, 1000, never).next();
  const stop = new AbortController();
  await Promise.all(Array.from({ length: 300 }, () => begun(client({ optionalWatches: true }), stop.signal)));
  assert.equal(server.connections, 1);
  stop.abort();
});

test('requests beyond what the server takes wait for a stream', async (t) => {
  const held: ServerHttp2Stream[] = [];
  const { server, client } = await open(t, (stream) => void held.push(stream), {
    settings: { maxConcurrentStreams: 2 },
  });
  const gets = Array.from({ length: 10 }, () => client().get(NODES, { name: 'n' }, never));
  let most = 0;
  for (let done = 0; done < 10; done++) {
    await until('a request', () => held.length > 0);
    most = Math.max(most, held.length);
    const stream = held.shift();
    if (stream !== undefined) json({})(stream, '', '', '');
  }
  await Promise.all(gets);
  assert.ok(most <= 2 * server.connections + 2 && server.connections <= 2, `${most} on ${server.connections}`);
});

test('heartbeats go on while the other connection is stuck', async (t) => {
  const { wire, client } = await open(t, json({}));
  await client().get(NODES, { name: 'n' }, never);
  wire.freeze();
  const stop = new AbortController();
  const waiting = client().get(NODES, { name: 'n' }, stop.signal);
  await client({ lane: 'heartbeat' }).get(NODES, { name: 'n' }, never);
  stop.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
});

test('a connection that the server closes in good order: requests finish, watches come back on another', async (t) => {
  let finish: () => void = () => undefined;
  const { server, client } = await open(t, (stream, path, body, method) => {
    if (path.includes('watch=true')) watching(stream, path, body, method);
    else if (path.includes('slow')) finish = () => json({ metadata: { name: 'slow' } })(stream, path, body, method);
    else json({})(stream, path, body, method);
  });
  const { ended } = await begun(client());
  const slow = client().get(NODES, { name: 'slow' }, never);
  await until('the request', () => server.paths.some((p) => p.includes('slow')));
  for (const session of server.sessions) session.goaway();
  assert.ok(isFault(await ended, 'unavailable'));
  await client().get(NODES, { name: 'n' }, never);
  assert.equal(server.connections, 2);
  finish();
  assert.equal((await slow).metadata.name, 'slow');
  await until('the first connection to be closed', () => server.sockets.size === 1);
});

test('a refused stream is sent again, a reset one is not', async (t) => {
  let calls = 0;
  let code: number = constants.NGHTTP2_REFUSED_STREAM;
  const { client } = await open(t, (stream, path, body, method) => {
    if (++calls === 1) stream.close(code);
    else json({})(stream, path, body, method);
  });
  await client().create(PODS, { namespace: 'n' }, {}, never);
  assert.equal(calls, 2);
  for (const other of [constants.NGHTTP2_INTERNAL_ERROR, constants.NGHTTP2_ENHANCE_YOUR_CALM]) {
    calls = 0;
    code = other;
    await assert.rejects(client().create(PODS, { namespace: 'n' }, {}, never), (err) => isFault(err, 'unavailable'));
    assert.equal(calls, 1);
  }
});

test('a connection that breaks under a request: what may be done twice is, a creation is not', async (t) => {
  let breaking = false;
  const { server, client } = await open(t, (stream, path, body, method) => {
    if (breaking) for (const socket of server.sockets) socket.destroy();
    else json({})(stream, path, body, method);
    breaking = false;
  });
  await client().get(NODES, { name: 'n' }, never);
  breaking = true;
  await client().get(NODES, { name: 'n' }, never);
  breaking = true;
  const created = client().create(PODS, { namespace: 'n' }, {}, never);
  await assert.rejects(created, (err) => isFault(err, 'unavailable'));
  assert.equal(server.paths.length, 4);
});

/** Lets `seconds` pass on the clock, with time for the sockets in between, or until `isDone`. */
async function pass(clock: ManualClock, seconds: number, isDone: () => boolean = () => false): Promise<void> {
  for (let ms = 0; ms < seconds * 1000 && !isDone(); ms += 250) {
    await clock.advance(250);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test('a connection that has fallen silent under a watch is left for a new one within six seconds', async (t) => {
  const clock = new ManualClock();
  const { wire, server, client } = await open(t, watching, { clock });
  const { ended } = await begun(client());
  wire.freeze();
  let isOver = false;
  void ended.then(() => (isOver = true));
  await pass(clock, 6, () => isOver);
  assert.ok(isOver);
  assert.match(String(await ended), /no answer to a ping, while new connections are answered/);
  assert.equal(server.connections, 2);
});

test('a request that waits on a silent connection is sent again on a new one, a creation is not', async (t) => {
  const clock = new ManualClock();
  const { wire, server, client } = await open(t, json({}), { clock });
  for (const method of ['get', 'create'] as const) {
    await client().get(NODES, { name: 'n' }, never);
    wire.freeze();
    const before = { at: clock.monotonic(), paths: server.paths.length };
    let isOver = false;
    const asked = method === 'get' ? client().get(NODES, { name: 'n' }, never) : create(client());
    const settled = asked.then(
      () => 'answered',
      (err: unknown) => (isFault(err, 'unavailable') ? 'lost' : String(err)),
    );
    void settled.then(() => (isOver = true));
    await pass(clock, 4, () => isOver);
    assert.ok(isOver, `${method}: ${clock.monotonic() - before.at} ms`);
    assert.equal(await settled, method === 'get' ? 'answered' : 'lost');
    assert.equal(server.paths.length - before.paths, method === 'get' ? 1 : 0);
  }
});

const create = (client: KubeClient): Promise<unknown> => client.create(PODS, { namespace: 'n' }, {}, never);

test('where new connections are silent, too, the old one goes on when the server does', async (t) => {
  const clock = new ManualClock();
  const { wire, server, client } = await open(t, json({}), { clock });
  await client().get(NODES, { name: 'n' }, never);
  wire.freeze('all');
  const waiting = client().get(NODES, { name: 'n' }, never);
  await pass(clock, 10);
  wire.thaw();
  await waiting;
  assert.equal(server.paths.length, 2);
});

test('the pings of a minute at rest are twenty, and weigh less than two renewals of the lease', async (t) => {
  const clock = new ManualClock();
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: 'worker-1',
      namespace: 'kube-node-lease',
      uid: '3f0c9a5e-8a53-4b62-a1c4-3f9d7b1c2a10',
      resourceVersion: '1234567',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Node', name: 'worker-1', uid: '1b2c3d4e-0000-4000-8000-1234567890ab' },
      ],
    },
    spec: { holderIdentity: 'worker-1', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z' },
  };
  const mixed: Answer = (stream, path, body, method) =>
    (path.includes('watch=true') ? watching : json(lease))(stream, path, body, method);
  const { wire, client } = await open(t, mixed, { clock });
  await begun(client());
  const before = wire.bytes;
  for (let ms = 0; ms < 60_000; ms += 3000) {
    const { down } = wire.bytes;
    await clock.advance(3000);
    await until('the answer to the ping', () => wire.bytes.down > down);
  }
  const after = wire.bytes;
  await client().replace(LEASES, { namespace: 'kube-node-lease', name: 'worker-1' }, lease, never);
  const request = wire.bytes;
  const pings = [after.up - before.up, after.down - before.down] as const;
  const one = [request.up - after.up, request.down - after.down] as const;
  t.diagnostic(
    `pings of a minute: ${pings.join(' + ')} bytes up and down; one renewal of the lease: ${one.join(' + ')}`,
  );
  assert.ok(pings[0] + pings[1] < 2 * (one[0] + one[1]));
});

test('a new certificate gets new connections; requests of the old ones finish', async (t) => {
  const peers: string[] = [];
  let finish: () => void = () => undefined;
  const { server, client, identity } = await open(t, (stream, path, body, method) => {
    const socket = stream.session?.socket as TLSSocket | undefined;
    peers.push(socket?.getPeerCertificate().subject?.CN?.toString() ?? '');
    if (path.includes('watch=true')) watching(stream, path, body, method);
    else if (path.includes('slow')) finish = () => json({ metadata: { name: 'slow' } })(stream, path, body, method);
    else json({})(stream, path, body, method);
  });
  identity.current = { tls: issue('first') };
  const { ended } = await begun(client());
  const slow = client().get(NODES, { name: 'slow' }, never);
  await until('the request', () => server.paths.some((p) => p.includes('slow')));
  identity.current = { tls: issue('second') };
  await client().get(NODES, { name: 'n' }, never);
  assert.ok(isFault(await ended, 'unavailable'));
  finish();
  assert.equal((await slow).metadata.name, 'slow');
  await until('the old connection to be closed', () => server.sockets.size === 1);
  assert.deepEqual(peers, ['first', 'first', 'second']);
});

test('no promise outlives its signal, and the server is told', async (t) => {
  const closed: number[] = [];
  const { server, client } = await open(t, (stream, path) => {
    stream.once('close', () => closed.push(stream.rstCode));
    if (path.includes('half')) stream.respond({ ':status': 200 });
    if (path.includes('half')) stream.write('{"metadata":');
    if (path.includes('hints')) stream.additionalHeaders({ ':status': 103 });
  });
  for (const name of ['silent', 'half', 'hints']) {
    const stop = new AbortController();
    const waiting = client().get(NODES, { name }, stop.signal);
    const refused = assert.rejects(waiting, new RegExp(`enough of ${name}`));
    await until('the request', () => server.paths.some((p) => p.includes(name)));
    stop.abort(new Error(`enough of ${name}`));
    await refused;
  }
  await until('the resets', () => closed.length === 3);
  assert.ok(closed.every((code) => code === constants.NGHTTP2_CANCEL));
  await assert.rejects(client({ timeoutMs: 50 }).get(NODES, { name: 'silent' }, never), (err) =>
    isFault(err, 'deadline'),
  );
});

test('an answer without an end takes no more memory than the bound', async (t) => {
  const chunk = Buffer.alloc(1024 * 1024, 32);
  const { client } = await open(t, (stream) => {
    stream.respond({ ':status': 200 });
    const pour = (): void => {
      while (!stream.destroyed && stream.write(chunk));
    };
    stream.on('drain', pour);
    pour();
  });
  // The bound is many megabytes, which an emulated processor takes its time for.
  await assert.rejects(client({ timeoutMs: 600_000 }).get(NODES, { name: 'n' }, never), /larger than \d+ bytes/);
});

test('an error without an end is cut off', async (t) => {
  const { client } = await open(t, (stream) => {
    stream.respond({ ':status': 500 });
    stream.write(Buffer.alloc(1024 * 1024, 65));
  });
  await assert.rejects(client().get(NODES, { name: 'n' }, never), (err) => isFault(err));
});

test('whoever asks while nobody is there is told at once, and one attempt is made at a time', async (t) => {
  const port = await freePort();
  // It stands still: what waited for the next attempt would wait for ever.
  const clock = new ManualClock();
  const { server, client, transport } = await open(t, json({}), { port, clock });
  await client().get(NODES, { name: 'n' }, never);
  await server.stop();
  const refused = (): Promise<unknown> =>
    client()
      .get(NODES, { name: 'n' }, never)
      .catch((err: unknown) => err);
  const errors = await Promise.all(Array.from({ length: 200 }, refused));
  assert.ok(errors.every((err) => isFault(err, 'unavailable')));
  const heard: string[] = [];
  transport.recovery.onRecovered(() => heard.push('back'));
  const again = await new Server(json({})).start(port);
  t.after(() => again.stop());
  await until('the server', async () => {
    await clock.advance(MAX_ABSENT_MS);
    return !((await refused()) instanceof Error);
  });
  assert.deepEqual(heard, ['back']);
});
