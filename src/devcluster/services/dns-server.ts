// Answers pods' questions for names: the cluster's own from the store, all others by the resolvers of the machine.
import { createSocket, type RemoteInfo } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import { textAt } from '../api/objects.ts';
import type { ObjectStore } from '../api/store.ts';
import { CODES, encodeAnswer, questionOf } from './dns-message.ts';
import { isOurs, lookUp, type Names } from './zone.ts';

export type DnsDeps = { readonly store: ObjectStore; readonly clock: Clock; readonly log: Logger };

export const DNS_PORT = 53;
const PATIENCE_MS = 2000;
const MAX_STREAM_MS = 10_000;

export class DnsServer {
  readonly #deps: DnsDeps;
  readonly #host: string;
  readonly #port: number;
  readonly #resolvers: () => Promise<readonly string[]>;

  constructor(deps: DnsDeps, opts: { host: string; port?: number; resolvers?: () => Promise<readonly string[]> }) {
    this.#deps = deps;
    this.#host = opts.host;
    this.#port = opts.port ?? DNS_PORT;
    this.#resolvers = opts.resolvers ?? machineResolvers;
  }

  /** Until `signal` aborts; throws when the address cannot be had. */
  async run(signal: AbortSignal, listening: (port: number) => void = () => undefined): Promise<void> {
    const datagrams = createSocket('udp4');
    const answer = (query: Buffer, from: RemoteInfo): void =>
      void this.#answer(query, true).then((reply) => {
        if (reply !== undefined && !signal.aborted) datagrams.send(reply, from.port, from.address);
      });
    datagrams.on('message', answer);
    const streams = createServer((socket) => this.#stream(socket));
    try {
      datagrams.bind(this.#port, this.#host);
      await once(datagrams, 'listening', { signal });
      const { port } = datagrams.address();
      streams.listen(port, this.#host);
      await once(streams, 'listening', { signal });
      datagrams.on('error', (err) => this.#deps.log.warn('a datagram was lost', { err }));
      listening(port);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    } finally {
      datagrams.close();
      streams.close();
    }
  }

  #names(): Names {
    const { store } = this.#deps;
    return {
      service: (namespace, name) => store.get('services', `${namespace}/${name}`)?.object,
      slices: (namespace, service) =>
        store
          .list('discovery.k8s.io/endpointslices', namespace)
          .map((stored) => stored.object)
          .filter((slice) => textAt(slice, 'metadata', 'labels', 'kubernetes.io/service-name') === service),
    };
  }

  async #answer(query: Buffer, isDatagram: boolean): Promise<Buffer | undefined> {
    const question = questionOf(query);
    if (question === undefined) return undefined;
    if (isOurs(question.name)) {
      const found = lookUp(question.name, question.type, this.#names());
      return encodeAnswer(query, question, found === undefined ? CODES.noName : CODES.ok, found ?? [], isDatagram);
    }
    for (const resolver of await this.#resolvers()) {
      const reply = await (isDatagram ? this.#askByDatagram(query, resolver) : this.#askByStream(query, resolver));
      if (reply !== undefined) return reply;
    }
    return encodeAnswer(query, question, CODES.failed, [], isDatagram);
  }

  /** Undefined when it does not answer in time. */
  #askByDatagram(query: Buffer, resolver: string): Promise<Buffer | undefined> {
    const [address = '', port = String(DNS_PORT)] = resolver.split('#');
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
    return new Promise((resolve) => {
      const done = (reply: Buffer | undefined): void => {
        timer.cancel();
        socket.close();
        resolve(reply);
      };
      const timer = this.#deps.clock.after(PATIENCE_MS, () => done(undefined));
      socket.once('message', (reply) => done(reply));
      socket.once('error', () => done(undefined));
      socket.send(query, Number(port), address);
    });
  }

  #askByStream(query: Buffer, resolver: string): Promise<Buffer | undefined> {
    const [address = '', port = String(DNS_PORT)] = resolver.split('#');
    const socket = connect(Number(port), address);
    return new Promise((resolve) => {
      const done = (reply: Buffer | undefined): void => {
        timer.cancel();
        socket.destroy();
        resolve(reply);
      };
      const timer = this.#deps.clock.after(PATIENCE_MS, () => done(undefined));
      socket.on('error', () => done(undefined));
      socket.once('close', () => done(undefined));
      readFramed(socket, (reply) => done(reply));
      socket.write(framed(query));
    });
  }

  #stream(socket: Socket): void {
    socket.setTimeout(MAX_STREAM_MS, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    readFramed(socket, (query) => {
      void this.#answer(query, false).then((reply) => {
        if (reply === undefined) socket.destroy();
        else socket.write(framed(reply));
      });
    });
  }
}

const framed = (message: Buffer): Buffer => {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
};

/** Calls `each` for every message behind its length. */
function readFramed(socket: Socket, each: (message: Buffer) => void): void {
  let waiting = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    waiting = Buffer.concat([waiting, chunk]);
    while (waiting.length >= 2 && waiting.length >= 2 + waiting.readUInt16BE(0)) {
      const end = 2 + waiting.readUInt16BE(0);
      each(waiting.subarray(2, end));
      waiting = waiting.subarray(end);
    }
  });
}

/** Read anew for each question: machines move between networks. */
async function machineResolvers(): Promise<readonly string[]> {
  const text = await readFile('/etc/resolv.conf', 'utf8').catch(() => '');
  return [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map((match) => match[1] ?? '');
}
