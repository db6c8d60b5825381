// Bytes on wires: protobuf, CRI answers, gRPC over HTTP/2, HTTP in both directions, WebSocket, SPDY, X.509, plugins.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import {
  ContainerStatusResponse,
  ListContainersResponse,
  ListPodSandboxResponse,
  PodSandboxStatusResponse,
} from '../../src/cri/gen/cri.ts';
import { groupByPod } from '../../src/observe/listing.ts';
import { Registry } from '../../src/lib/metrics.ts';
import { ProviderPlugin } from '../../src/images/provider-plugin.ts';
import { runExecPlugin } from '../../src/kube/exec-credential.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import { FrameReader } from '../../src/lib/grpc/frame.ts';
import { httpExchange } from '../../src/lib/http/exchange.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { decode, encode } from '../../src/lib/proto/codec.ts';
import { createSigningRequest, readSigningRequest } from '../../src/lib/x509/csr.ts';
import { readDer } from '../../src/lib/x509/der.ts';
import { newKeyPair } from '../../src/lib/x509/keys.ts';
import { Health } from '../../src/probes/gen/health.ts';
import { Listener } from '../../src/server/listener.ts';
import { exactly } from '../../src/server/router.ts';
import {
  dataHead,
  FrameType,
  HeaderWriter,
  pingFrame,
  rstFrame,
  SpdyDecoder,
} from '../../src/server/streaming/spdy-frames.ts';
import { FrameDecoder, frameOf, Opcode } from '../../src/server/streaming/websocket-frames.ts';
import type { Target } from './engine.ts';
import { mutateBytes, mutateJson, type Random } from './mutate.ts';

const never = new AbortController().signal;

const listed = encode(ListContainersResponse, {
  containers: [
    {
      id: 'c1',
      podSandboxId: 's1',
      metadata: { name: 'c', attempt: 1 },
      labels: { 'io.kubernetes.pod.uid': 'u', 'io.kubernetes.pod.name': 'p', 'io.kubernetes.pod.namespace': 'n' },
      annotations: { 'io.kubernetes.container.restartCount': '3' },
      createdAt: 1n,
    },
  ],
} as never);
const CRI = [ListContainersResponse, ListPodSandboxResponse, ContainerStatusResponse, PodSandboxStatusResponse];

/** Pushed in pieces of any size. */
function inPieces(random: Random, bytes: Buffer, push: (piece: Buffer) => void): void {
  for (let at = 0; at < bytes.length;) {
    const size = 1 + Math.floor(random() * 40);
    push(bytes.subarray(at, at + size));
    at += size;
  }
}

/** A peer that answers every connection with what is set. */
class Peer {
  answer: Buffer = Buffer.alloc(0);
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();

  async open(): Promise<void> {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
      socket.once('data', () => socket.end(this.answer));
    });
    await new Promise<void>((ready) => this.#server?.listen(0, '127.0.0.1', ready));
  }

  get port(): number {
    const address = this.#server?.address() as AddressInfo | null | undefined;
    return address?.port ?? 0;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server?.close(closed));
  }
}

const http2Frame = (type: number, flags: number, stream: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
};
/** SETTINGS, HEADERS (:status 200), DATA with one gRPC message, trailers without a status. */
const HTTP2 = Buffer.concat([
  http2Frame(4, 0, 0, Buffer.alloc(0)),
  http2Frame(4, 1, 0, Buffer.alloc(0)),
  http2Frame(1, 4, 1, Buffer.from([0x88])),
  http2Frame(0, 0, 1, Buffer.from([0, 0, 0, 0, 2, 8, 1])),
  http2Frame(1, 5, 1, Buffer.from([0x88])),
  http2Frame(7, 0, 0, Buffer.alloc(8)),
]);
const HTTP = [
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nbytes',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n',
].map((text) => Buffer.from(text));
const REQUESTS = [
  'GET /ok HTTP/1.1\r\nHost: a\r\n\r\n',
  'POST /ok HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
  'GET /ok HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n',
].map((text) => Buffer.from(text));

function clientTarget(name: string, samples: readonly Buffer[], ask: (port: number) => Promise<unknown>): Target {
  const peer = new Peer();
  return {
    name,
    begin: () => peer.open(),
    end: () => peer.close(),
    once: async (random) => {
      peer.answer = mutateBytes(random, samples);
      await ask(peer.port);
    },
  };
}

const grpcAsk = async (port: number): Promise<void> => {
  const channel = new GrpcChannel(systemClock, { target: { host: '127.0.0.1', port }, maxReceiveBytes: 4096 });
  try {
    await channel.unary(Health.check, { service: '' }, { signal: never, deadlineMs: 500 });
  } finally {
    channel.close();
  }
};

const httpAsk = (port: number): Promise<unknown> =>
  httpExchange(
    systemClock,
    {
      target: { scheme: 'http', host: '127.0.0.1', port, path: '/' },
      headers: {},
      verifyCertificate: true,
      deadlineMs: 500,
      maxBodyBytes: 4096,
    },
    never,
  );

const stopListener = new AbortController();
let listening: Promise<void> = Promise.resolve();
const listener = new Listener(
  { endpoint: exactly('/ok', ({ response }) => void response.end('ok')), log: silentLogger },
  { name: 'fuzz', address: '127.0.0.1', port: 0 },
);
const serverTarget: Target = {
  name: 'HTTP requests',
  begin: async () => {
    listening = listener.run(stopListener.signal);
    while (listener.boundPort === undefined) await new Promise((resolve) => setImmediate(resolve));
  },
  end: async () => {
    stopListener.abort();
    await listening;
  },
  once: (random) =>
    new Promise((resolve, reject) => {
      const socket = connect(listener.boundPort ?? 0, '127.0.0.1', () => socket.end(mutateBytes(random, REQUESTS)));
      const timer = setTimeout(() => socket.destroy(), 200);
      socket.on('error', (err) => (/ECONNREFUSED/.test(err.message) ? reject(err) : undefined));
      socket.on('close', () => {
        clearTimeout(timer);
        resolve();
      });
      socket.resume();
    }),
};

let folder = '';
const pluginTarget: Target = {
  name: 'plugin output',
  begin: async () => {
    folder = mkdtempSync('/tmp/kts-fuzz-');
    writeFileSync(join(folder, 'plug'), `#!/bin/sh\ncat ${folder}/answer\n`);
    chmodSync(join(folder, 'plug'), 0o755);
  },
  end: async () => rmSync(folder, { recursive: true, force: true }),
  once: async (random) => {
    const registry = random() < 0.5;
    const V1 = 'credentialprovider.kubelet.k8s.io/v1';
    const sample = registry
      ? {
          kind: 'CredentialProviderResponse',
          apiVersion: V1,
          cacheKeyType: 'Image',
          cacheDuration: '1h',
          auth: { 'r.io': { username: 'u', password: 'p' } },
        }
      : {
          kind: 'ExecCredential',
          apiVersion: 'client.authentication.k8s.io/v1',
          status: { token: 't', expirationTimestamp: '2026-01-01T00:00:00Z' },
        };
    writeFileSync(join(folder, 'answer'), JSON.stringify(mutateJson(random, sample)) ?? '');
    const command = join(folder, 'plug');
    if (!registry) {
      const exec = {
        apiVersion: 'client.authentication.k8s.io/v1',
        command,
        args: [],
        env: [],
        installHint: '',
        provideClusterInfo: false,
      };
      return void (await runExecPlugin({ clock: systemClock }, exec as never, { server: 'https://h' } as never, never));
    }
    const metrics = new Registry();
    const plugin = new ProviderPlugin(
      {
        clock: systemClock,
        metrics: {
          errors: metrics.counter('e', 'e', ['plugin_name']),
          duration: metrics.histogram('d', 'd', ['plugin_name'], [1]),
        },
      },
      { name: 'plug', apiVersion: V1, matchImages: ['r.io'], defaultCacheMs: 1, args: [], env: [] } as never,
      folder,
    );
    await plugin.logins('r.io/a:b', undefined, never);
  },
};

const csr = createSigningRequest(
  { subject: { commonName: 'n', organization: ['o'] } as never, dnsNames: ['a'], ipAddresses: ['1.2.3.4'] },
  newKeyPair(),
);
const csrDer = Buffer.from(csr.replace(/-----[^-]+-----|\s/g, ''), 'base64');
const headers = new HeaderWriter();
const control = (type: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt16BE(0x8003, 0);
  head.writeUInt16BE(type, 2);
  head.writeUIntBE(payload.length, 5, 3);
  return Buffer.concat([head, payload]);
};
void headers;
const SPDY = [
  control(FrameType.synReply ?? 2, Buffer.alloc(12)),
  Buffer.concat([pingFrame(1), rstFrame(1, 1), dataHead(1, 4, true), Buffer.from('data')]),
];
const masked = (opcode: number, payload: Buffer): Buffer => {
  const plain = frameOf(opcode, payload);
  const head = Buffer.from(plain.subarray(0, 2));
  head[1] = (head[1] ?? 0) | 0x80;
  return Buffer.concat([head, Buffer.alloc(4), payload]);
};

export const WIRE_TARGETS: readonly Target[] = [
  {
    name: 'protobuf',
    once: (r) => {
      const bytes = mutateBytes(r, [listed]);
      for (const type of CRI) {
        const message: unknown = decode(type as never, bytes);
        encode(type as never, message as never);
      }
    },
  },
  {
    name: 'CRI answers',
    once: (r) => {
      const { containers } = decode(ListContainersResponse, mutateBytes(r, [listed]));
      groupByPod([], containers);
    },
  },
  {
    name: 'gRPC frames',
    once: (r) => {
      const reader = new FrameReader(4096);
      inPieces(r, mutateBytes(r, [Buffer.from([0, 0, 0, 0, 2, 8, 1])]), (piece) => void [...reader.push(piece)]);
    },
  },
  clientTarget('HTTP/2 answers', [HTTP2], grpcAsk),
  clientTarget('HTTP answers', HTTP, httpAsk),
  serverTarget,
  {
    name: 'WebSocket',
    once: (r) => {
      const decoder = new FrameDecoder();
      const samples = [
        masked(Opcode.binary, Buffer.from('hello')),
        masked(Opcode.ping, Buffer.from('x')),
        masked(Opcode.close, Buffer.from([3, 232])),
      ];
      inPieces(r, mutateBytes(r, samples), (piece) => void [...decoder.push(piece)]);
    },
  },
  {
    name: 'SPDY',
    once: (r) => {
      const decoder = new SpdyDecoder();
      inPieces(r, mutateBytes(r, SPDY), (piece) => void [...decoder.push(piece)]);
    },
  },
  {
    name: 'X.509',
    once: (r) => {
      const bytes = mutateBytes(r, [csrDer]);
      if (r() < 0.5) readDer(bytes);
      else
        readSigningRequest(
          `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`,
        );
    },
  },
  pluginTarget,
];
