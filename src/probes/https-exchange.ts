// A request of an HTTPS probe: HTTP/2 where the server would rather speak it, as Go's client offers it, else HTTP/1.1, over
// a connection of its own. Certificates are not checked. Settles as `httpExchange` does.
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, messageOf, type Fault } from '../lib/errors.ts';
import { httpExchange, type HttpReply, type WholeRequest } from '../lib/http/exchange.ts';
import { encodeFields, type HeaderFields } from '../lib/http/header-fields.ts';
import { HttpError, type HttpStage } from '../lib/http/open.ts';
import { ClientConnection } from '../lib/http2/connection.ts';
import { fieldOf } from '../lib/http2/hpack-decoder.ts';
import { encodeHeaders } from '../lib/http2/hpack-encoder.ts';
import { hostPort } from './net-errors.ts';

const WINDOWS = { streamWindow: 65_535, connectionWindow: 65_535 };
/** What HTTP/2 has no use for, or says in another way. */
const HOP_BY_HOP = new Set(['connection', 'host', 'keep-alive', 'proxy-connection', 'te', 'upgrade']);

type Asked = WholeRequest & { readonly deadlineMs: number };

export async function httpsExchange(clock: Clock, asked: Asked, signal: AbortSignal): Promise<HttpReply> {
  const until = clock.monotonic() + asked.deadlineMs;
  const fields = encoded(asked.headers);
  const socket = await connected(clock, asked, signal);
  const left = { ...asked, deadlineMs: until - clock.monotonic() };
  if (socket.alpnProtocol !== 'h2') return await httpExchange(clock, { ...left, socket }, signal);
  return await http2Exchange(clock, socket, left, blockOf(asked, fields), signal);
}

/** Before anything is sent: what may not stand in a header is told as it is without TLS. */
function encoded(headers: HeaderFields): ReturnType<typeof encodeFields> {
  try {
    return encodeFields(headers, 'utf8');
  } catch (err) {
    throw new HttpError('invalid', messageOf(err), { stage: 'request', connected: false, cause: err });
  }
}

const failure = (socket: TLSSocket, stage: HttpStage, kind: Fault, message: string, cause?: unknown): HttpError =>
  new HttpError(kind, message, { stage, connected: socket.localPort !== undefined, cause });

function connected(clock: Clock, { target, deadlineMs, lookup }: Asked, signal: AbortSignal): Promise<TLSSocket> {
  signal.throwIfAborted();
  const named = isIP(target.host) === 0;
  const options: ConnectionOptions & { readonly autoSelectFamily: boolean } = {
    host: target.host,
    port: target.port,
    servername: named ? target.host : '',
    autoSelectFamily: named,
    ALPNProtocols: ['h2', 'http/1.1'],
    rejectUnauthorized: false,
    ...(lookup === undefined ? {} : { lookup }),
  };
  const socket = connect(options);
  return new Promise((resolve, reject) => {
    const settle = (err?: unknown): void => {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
      socket.off('close', onClose);
      if (err === undefined) return resolve(socket);
      socket.destroy();
      reject(err as Error);
    };
    const onAbort = (): void => settle(signal.reason);
    const onClose = (): void => settle(failure(socket, 'head', 'unavailable', 'the connection was closed'));
    const timer = clock.after(deadlineMs, () => settle(failure(socket, 'head', 'deadline', 'no connection in time')));
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('error', (err) =>
      settle(failure(socket, 'head', 'unavailable', messageOf(err) || (errnoOf(err) ?? 'failed'), err)),
    );
    socket.once('close', onClose);
    socket.once('secureConnect', () => settle());
  });
}

function blockOf({ target }: Asked, fields: ReturnType<typeof encodeFields>): Buffer {
  const headers = Object.entries(fields).flatMap(([name, value]) =>
    HOP_BY_HOP.has(name) ? [] : [value].flat().map((one) => [name, one] as const),
  );
  const { host } = fields;
  return encodeHeaders([
    [':method', 'GET'],
    [':path', target.path || '/'],
    [':scheme', 'https'],
    [':authority', typeof host === 'string' ? host : hostPort(target.host, target.port)],
    ...headers,
  ]);
}

function http2Exchange(
  clock: Clock,
  socket: TLSSocket,
  { deadlineMs, maxBodyBytes }: Asked,
  block: Buffer,
  signal: AbortSignal,
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    let head: { readonly status: number; readonly headers: IncomingHttpHeaders } | undefined;
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (err?: unknown): void => {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
      if (err !== undefined) reject(err as Error);
      else if (head !== undefined) {
        const body = Buffer.concat(chunks).subarray(0, maxBodyBytes);
        resolve({ ...head, statusText: '', body, cut: size > maxBodyBytes });
      }
      connection.destroy();
      socket.destroy();
    };
    const lost = (kind: Fault, message: string, cause?: unknown): void =>
      settle(failure(socket, head === undefined ? 'head' : 'body', kind, message, cause));
    const onAbort = (): void => settle(signal.reason);
    const timer = clock.after(deadlineMs, () => lost('deadline', 'no answer in time'));
    signal.addEventListener('abort', onAbort, { once: true });
    const connection = ClientConnection.on(socket, WINDOWS, { onRetired: () => undefined, onClose: () => undefined });
    const events = {
      onHead: (status: number, headers: readonly string[]) => {
        const location = fieldOf(headers, 'location');
        head = { status, headers: location === undefined ? {} : { location } };
      },
      onData: (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        if (size > maxBodyBytes) settle();
      },
      onTrailers: () => undefined,
      onEnd: () => settle(),
      onLost: (_code: number, error: Error | undefined) =>
        lost('unavailable', 'unexpected EOF', error ?? new Error('socket hang up')),
    };
    try {
      connection.request({ block }, events);
    } catch (err) {
      lost('unavailable', messageOf(err), err);
    }
  });
}
