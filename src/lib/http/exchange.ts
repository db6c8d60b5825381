// One HTTP request and its answer, over a connection of its own. The promise settles exactly once, whatever the peer does:
// on the answer, an upgrade, a close, an error, the abort of the signal or the deadline. See test/contracts/http-client.
import { request as httpRequest, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import type { Clock } from '../clock.ts';
import { KubeletError, messageOf, type Fault } from '../errors.ts';
import { encodeFields, type HeaderFields } from './header-fields.ts';

export type HttpTarget = {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** With the query; `/` when empty. */
  readonly path: string;
};

export type HttpRequest = {
  readonly target: HttpTarget;
  readonly method?: string;
  readonly headers: HeaderFields;
  readonly verifyCertificate: boolean;
  readonly deadlineMs: number;
  /** A longer body is cut here and the connection closed. */
  readonly maxBodyBytes: number;
};

export type HttpReply = {
  readonly status: number;
  readonly statusText: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The body was longer than asked for. */
  readonly cut: boolean;
};

/** How far an exchange had come: nothing was sent, the head of the answer was awaited, its body was being read. */
export type HttpStage = 'request' | 'head' | 'body';

export class HttpError extends KubeletError {
  readonly stage: HttpStage;
  /** There was a connection. */
  readonly connected: boolean;

  constructor(kind: Fault, message: string, where: { stage: HttpStage; connected: boolean; cause?: unknown }) {
    super(kind, message, { cause: where.cause });
    this.name = 'HttpError';
    this.stage = where.stage;
    this.connected = where.connected;
  }
}

const MAX_HEADER_BYTES = 64 * 1024;

/** An answer with status 101 ends the exchange: nothing here speaks another protocol. */
export async function httpExchange(clock: Clock, asked: HttpRequest, signal: AbortSignal): Promise<HttpReply> {
  signal.throwIfAborted();
  return await new Exchange(prepare(asked), asked).run(clock, signal);
}

function prepare(asked: HttpRequest): ClientRequest {
  try {
    const send = asked.target.scheme === 'https' ? httpsRequest : httpRequest;
    return send(optionsOf(asked));
  } catch (err) {
    throw new HttpError('invalid', messageOf(err), { stage: 'request', connected: false, cause: err });
  }
}

const optionsOf = ({
  target,
  method,
  headers,
  verifyCertificate,
}: HttpRequest): RequestOptions & { readonly autoSelectFamily: boolean } => ({
  host: target.host,
  port: target.port,
  path: target.path || '/',
  method: method ?? 'GET',
  headers: encodeFields(headers),
  agent: false,
  // Not that of a Host header, which is somebody's text.
  servername: isIP(target.host) === 0 ? target.host : '',
  autoSelectFamily: false,
  rejectUnauthorized: verifyCertificate,
  maxHeaderSize: MAX_HEADER_BYTES,
});

class Exchange {
  readonly #request: ClientRequest;
  readonly #asked: HttpRequest;
  #response: IncomingMessage | undefined;

  constructor(request: ClientRequest, asked: HttpRequest) {
    this.#request = request;
    this.#asked = asked;
  }

  run(clock: Clock, signal: AbortSignal): Promise<HttpReply> {
    return new Promise((resolve, reject) => {
      const release = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
        this.#request.destroy();
      };
      const done = (reply: HttpReply): void => {
        release();
        resolve(reply);
      };
      const failed = (err: unknown): void => {
        release();
        reject(err as Error);
      };
      const onAbort = (): void => failed(signal.reason);
      const timer = clock.after(this.#asked.deadlineMs, () =>
        failed(this.#error('deadline', `no answer in ${Math.round(this.#asked.deadlineMs)}ms`)),
      );
      signal.addEventListener('abort', onAbort, { once: true });
      this.#listen(done, failed);
      try {
        this.#request.end();
      } catch (err) {
        failed(new HttpError('invalid', messageOf(err), { stage: 'request', connected: false, cause: err }));
      }
    });
  }

  #listen(done: (reply: HttpReply) => void, failed: (err: unknown) => void): void {
    this.#request.on('error', (err) => failed(this.#error('unavailable', messageOf(err), err)));
    this.#request.on('close', () => failed(this.#error('unavailable', 'the connection was closed')));
    this.#request.on('upgrade', (response, socket) => {
      socket.destroy();
      done(replyOf(response, Buffer.alloc(0), false));
    });
    this.#request.on('response', (response) => {
      this.#response = response;
      this.#readBody(response, done, failed);
    });
  }

  #readBody(response: IncomingMessage, done: (reply: HttpReply) => void, failed: (err: unknown) => void): void {
    const limit = this.#asked.maxBodyBytes;
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (cut: boolean): void => done(replyOf(response, Buffer.concat(chunks).subarray(0, limit), cut));
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > limit) finish(true);
    });
    response.on('end', () => finish(false));
    response.on('error', (err) => failed(this.#error('unavailable', 'unexpected EOF', err)));
    response.on('close', () => failed(this.#error('unavailable', 'unexpected EOF')));
  }

  #error(kind: Fault, message: string, cause?: unknown): HttpError {
    const connected = this.#request.socket?.localPort !== undefined;
    return new HttpError(kind, message, { stage: this.#response === undefined ? 'head' : 'body', connected, cause });
  }
}

const replyOf = (response: IncomingMessage, body: Buffer, cut: boolean): HttpReply => ({
  status: response.statusCode ?? 0,
  statusText: response.statusMessage ?? '',
  headers: response.headers,
  body,
  cut,
});
