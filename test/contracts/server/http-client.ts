// A client for the kubelet's ports that sends what it is told, byte for byte, and a WebSocket client of the same kind.
import { randomBytes } from 'node:crypto';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';

export type Credential = { readonly cert?: string; readonly key?: string; readonly token?: string };
export type Target = { readonly host: string; readonly port: number; readonly tls: boolean; readonly as?: Credential };

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
};

const requestTo = (
  { host, port, tls, as }: Target,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): ReturnType<typeof httpRequest> => {
  const auth: Record<string, string> = as?.token === undefined ? {} : { authorization: `Bearer ${as.token}` };
  const common = { host, port, method, path, headers: { ...auth, ...headers }, agent: false as const };
  const certificate = as?.cert === undefined ? {} : { cert: as.cert, key: as.key };
  return tls ? httpsRequest({ ...common, ...certificate, rejectUnauthorized: false }) : httpRequest(common);
};

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

export function send(
  target: Target,
  method: string,
  path: string,
  options: { readonly headers?: Readonly<Record<string, string>>; readonly body?: string | Buffer } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = requestTo(target, method, path, options.headers ?? {});
    outgoing.once('error', reject);
    outgoing.once('response', (incoming) => {
      bodyOf(incoming).then(
        (body) => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body }),
        reject,
      );
    });
    outgoing.once('upgrade', (incoming, socket) => {
      socket.destroy();
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: '' });
    });
    outgoing.end(options.body);
  });
}

export type Opened =
  | { readonly status: 101; readonly head: IncomingMessage; readonly socket: Duplex; readonly first: Buffer }
  | { readonly status: number; readonly body: string; readonly socket?: undefined };

export function upgrade(
  target: Target,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const outgoing = requestTo(target, method, path, { connection: 'Upgrade', ...headers });
    outgoing.once('error', reject);
    outgoing.once('upgrade', (head, socket, first) => {
      socket.on('error', () => socket.destroy());
      resolve({ status: 101, head, socket, first });
    });
    outgoing.once('response', (incoming) => {
      bodyOf(incoming).then((body) => resolve({ status: incoming.statusCode ?? 0, body }), reject);
    });
    outgoing.end();
  });
}

export type Frame = { readonly opcode: number; readonly payload: Buffer };

/** A masked frame, as clients must send them. */
export function maskedFrame(opcode: number, payload: Buffer, fin = true): Buffer {
  const mask = randomBytes(4);
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65536 ? 4 : 10);
  head[0] = (fin ? 0x80 : 0) | opcode;
  head[1] = 0x80 | (length < 126 ? length : length < 65536 ? 126 : 127);
  if (length >= 65536) head.writeBigUInt64BE(BigInt(length), 2);
  else if (length >= 126) head.writeUInt16BE(length, 2);
  const masked = Buffer.from(payload);
  for (let i = 0; i < length; i++) masked[i] = (masked[i] ?? 0) ^ (mask[i & 3] ?? 0);
  return Buffer.concat([head, mask, masked]);
}

export class TestWebSocket {
  readonly #socket: Duplex;
  readonly protocol: string;
  readonly frames: Frame[] = [];
  readonly closed: Promise<number>;
  onFrame: (frame: Frame) => void = () => undefined;
  #pending: Buffer;
  #code = 1006;

  constructor(socket: Duplex, protocol: string, first: Buffer) {
    this.#socket = socket;
    this.protocol = protocol;
    this.#pending = first;
    this.closed = new Promise((resolve) => socket.once('close', () => resolve(this.#code)));
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('end', () => socket.end());
    this.#take(Buffer.alloc(0));
  }

  get socket(): Duplex {
    return this.#socket;
  }

  send(channel: number, data: Buffer | string): boolean {
    return this.#socket.write(maskedFrame(2, Buffer.concat([Buffer.from([channel]), Buffer.from(data)])));
  }

  raw(bytes: Buffer): boolean {
    return this.#socket.write(bytes);
  }

  /** Everything received on a channel. */
  text(channel: number): string {
    const parts = this.frames
      .filter((f) => f.opcode === 2 && f.payload[0] === channel)
      .map((f) => f.payload.subarray(1));
    return Buffer.concat(parts).toString();
  }

  #take(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const bytes = this.#pending;
      if (bytes.length < 2) return;
      const short = (bytes[1] ?? 0) & 0x7f;
      const at = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (bytes.length < at) return;
      const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
      if (bytes.length < at + length) return;
      const frame = { opcode: (bytes[0] ?? 0) & 0x0f, payload: Buffer.from(bytes.subarray(at, at + length)) };
      this.#pending = bytes.subarray(at + length);
      if (frame.opcode === 8) this.#code = frame.payload.length >= 2 ? frame.payload.readUInt16BE(0) : 1005;
      this.frames.push(frame);
      this.onFrame(frame);
    }
  }
}

export async function openWebSocket(
  target: Target,
  path: string,
  protocols: readonly string[],
): Promise<TestWebSocket | { readonly status: number; readonly body: string }> {
  const opened = await upgrade(target, 'GET', path, {
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': randomBytes(16).toString('base64'),
    ...(protocols.length === 0 ? {} : { 'sec-websocket-protocol': protocols.join(', ') }),
  });
  if (opened.socket === undefined) return opened;
  const protocol = String(opened.head.headers['sec-websocket-protocol'] ?? '');
  return new TestWebSocket(opened.socket, protocol, opened.first);
}
