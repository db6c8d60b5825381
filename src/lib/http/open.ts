// Sends one HTTP request over a connection of its own and hands out the answer once its head is there. The promise settles
// exactly once, whatever the peer does: on the answer, an upgrade, a close, an error, the abort of the signal or the
// deadline. See test/contracts/http-client.
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import { errnoOf, KubeletError, messageOf, type Fault } from '../errors.ts';
import { encodeFields, type FieldText, type HeaderFields } from './header-fields.ts';

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
  /** What the headers' characters stand for; UTF-8 text unless said otherwise. */
  readonly headerText?: FieldText;
  readonly verifyCertificate: boolean;
  /**
   * For servers that anybody wrote, and connections that nobody else uses: an answer may be as loose as other clients take it.
   * Lines may end without a carriage return, and a length may stand beside chunks.
   */
  readonly lenient?: boolean;
  /** Who knows the addresses of a name; the system unless said otherwise. */
  readonly lookup?: LookupFunction;
  /** The certificate shown to a server that asks for one, in PEM. */
  readonly client?: { readonly cert: string; readonly key: string };
  /** Absent: the signal alone ends the wait. */
  readonly deadlineMs?: number;
  /** A connection to the target that is there already, instead of one of its own. */
  readonly socket?: Duplex;
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

/** The caller owns the connection: it reads `head` or `upgraded.socket`, or calls `destroy`. */
export type OpenReply = {
  readonly head: IncomingMessage;
  /** With status 101: the connection and what came behind the head. */
  readonly upgraded?: { readonly socket: Duplex; readonly first: Buffer };
  destroy(): void;
};

const MAX_HEADER_BYTES = 64 * 1024;

export async function openHttp(clock: Clock, asked: HttpRequest, signal: AbortSignal): Promise<OpenReply> {
  signal.throwIfAborted();
  const request = prepare(asked);
  return await new Promise((resolve, reject) => {
    const release = (): void => {
      timer?.cancel();
      signal.removeEventListener('abort', onAbort);
    };
    const done = (reply: OpenReply): void => {
      release();
      resolve(reply);
    };
    const failed = (err: unknown): void => {
      release();
      request.destroy();
      reject(err as Error);
    };
    const onAbort = (): void => failed(signal.reason);
    const { deadlineMs } = asked;
    const timer =
      deadlineMs === undefined
        ? undefined
        : clock.after(deadlineMs, () =>
            failed(openError(request, 'deadline', `no answer in ${Math.round(deadlineMs)}ms`)),
          );
    signal.addEventListener('abort', onAbort, { once: true });
    listen(request, done, failed);
    try {
      request.end();
    } catch (err) {
      failed(refused(err));
    }
  });
}

function prepare(asked: HttpRequest): ClientRequest {
  try {
    const { socket } = asked;
    if (socket !== undefined)
      return httpRequest({ ...optionsOf(asked), agent: undefined, createConnection: () => socket });
    return (asked.target.scheme === 'https' ? httpsRequest : httpRequest)(optionsOf(asked));
  } catch (err) {
    throw refused(err);
  }
}

const refused = (err: unknown): HttpError =>
  new HttpError('invalid', messageOf(err), { stage: 'request', connected: false, cause: err });

function optionsOf(asked: HttpRequest): RequestOptions {
  const { target, method, headers, headerText, verifyCertificate, lenient, lookup, client } = asked;
  const named = isIP(target.host) === 0;
  const options: RequestOptions & { readonly autoSelectFamily: boolean } = {
    host: target.host,
    port: target.port,
    path: target.path || '/',
    method: method ?? 'GET',
    headers: encodeFields(headers, headerText ?? 'utf8'),
    agent: false,
    // Not that of a Host header, which is somebody's text.
    servername: named ? target.host : '',
    autoSelectFamily: named,
    rejectUnauthorized: verifyCertificate,
    maxHeaderSize: MAX_HEADER_BYTES,
    insecureHTTPParser: lenient === true,
    ...(lookup === undefined ? {} : { lookup }),
    ...client,
  };
  return options;
}

function listen(request: ClientRequest, done: (reply: OpenReply) => void, failed: (err: unknown) => void): void {
  const destroy = (): void => void request.destroy();
  let answered = false;
  // After an answer both are too late to matter: whether its body is whole is for its reader to see.
  request.on('error', (err) => {
    if (!answered) failed(openError(request, 'unavailable', messageOf(err) || (errnoOf(err) ?? 'failed'), err));
  });
  request.on('close', () => {
    if (!answered) failed(openError(request, 'unavailable', 'the connection was closed'));
  });
  request.on('upgrade', (head, socket, first) => {
    socket.on('error', () => socket.destroy());
    done({ head, upgraded: { socket, first }, destroy: () => void socket.destroy() });
  });
  request.on('response', (head) => {
    answered = true;
    head.on('error', destroy);
    done({ head, destroy });
  });
}

const openError = (request: ClientRequest, kind: Fault, message: string, cause?: unknown): HttpError =>
  new HttpError(kind, message, { stage: 'head', connected: request.socket?.localPort !== undefined, cause });
