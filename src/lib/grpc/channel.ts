// A gRPC client over one HTTP/2 connection to a unix socket (or host and port). It connects when a call needs it, so a
// restarted peer is found by the very next call; callers decide about retries. Nothing here polls.
import {
  connect as connectHttp2,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
} from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { childScope } from '../abort.ts';
import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import { decode, encode } from '../proto/codec.ts';
import { frame, FrameReader } from './frame.ts';
import type { Rpc } from './rpc.ts';
import { GrpcCode, GrpcError } from './status.ts';

export type Target = { readonly socketPath: string } | { readonly host: string; readonly port: number };

export type ChannelOptions = {
  readonly target: Target;
  readonly maxReceiveBytes?: number;
  readonly connectTimeoutMs?: number;
  readonly userAgent?: string;
  /** A connection that was made is gone; the next call makes another. */
  readonly onDisconnect?: () => void;
  /** How much the peer may send before it is read. */
  readonly windowBytes?: number;
};

export type CallOptions = {
  readonly signal: AbortSignal;
  /** Absent means no deadline. */
  readonly deadlineMs?: number;
  /** For this call; the channel's own limit otherwise. */
  readonly maxReceiveBytes?: number;
  /** Headers that the service asks for. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Only so much of each field of the answer is kept: for answers whose length a stranger decides. */
  readonly keepFieldBytes?: number;
};

const DEFAULT_MAX_RECEIVE = 64 * 1024 * 1024;
const MAX_TIMEOUT_VALUE = 99_999_999;
const WINDOW_BYTES = 8 * 1024 * 1024;

/** The wire allows eight digits and a unit: milliseconds reach 27 hours, seconds three years, hours further than anybody waits. */
export function grpcTimeout(ms: number): string {
  const units = [
    ['m', 1],
    ['S', 1000],
    ['M', 60_000],
    ['H', 3_600_000],
  ] as const;
  for (const [unit, size] of units) {
    const value = Math.max(1, Math.ceil(ms / size));
    if (value <= MAX_TIMEOUT_VALUE) return `${value}${unit}`;
  }
  return `${MAX_TIMEOUT_VALUE}H`;
}

export class GrpcChannel {
  readonly #clock: Clock;
  readonly #o: ChannelOptions;
  #session: Promise<ClientHttp2Session> | undefined;
  /** The same once it stands: nearly every call finds it so, and need not wait. */
  #standing: ClientHttp2Session | undefined;

  constructor(clock: Clock, options: ChannelOptions) {
    this.#clock = clock;
    this.#o = options;
  }

  /** Resolves when there is a connection; fails where the first call would for want of one. */
  async connect(signal: AbortSignal): Promise<void> {
    await this.#connected(signal);
  }

  async unary<Req, Res>(rpc: Rpc<Req, Res>, request: Req, options: CallOptions): Promise<Res> {
    let answer: Res | undefined;
    await this.#call(rpc, request, options, (message) => {
      if (answer !== undefined) throw new GrpcError(GrpcCode.Internal, `${rpc.path}: more than one answer`);
      answer = message;
    });
    if (answer === undefined)
      throw new GrpcError(GrpcCode.Internal, `${rpc.path}: no answer before the end of the stream`);
    return answer;
  }

  /** Delivers each message as it comes and resolves when the server ends the stream well. */
  serverStream<Req, Res>(
    rpc: Rpc<Req, Res>,
    request: Req,
    options: CallOptions,
    onMessage: (message: Res) => void,
  ): Promise<void> {
    return this.#call(rpc, request, options, onMessage);
  }

  close(): void {
    const session = this.#session;
    this.#session = undefined;
    this.#standing = undefined;
    // A failed connect has nothing to close.
    session?.then((s) => s.destroy()).catch(() => undefined);
  }

  async #call<Req, Res>(
    rpc: Rpc<Req, Res>,
    request: Req,
    options: CallOptions,
    onMessage: (message: Res) => void,
  ): Promise<void> {
    options.signal.throwIfAborted();
    const scope = childScope(options.signal);
    const { deadlineMs } = options;
    const timer =
      deadlineMs === undefined
        ? undefined
        : this.#clock.after(deadlineMs, () =>
            scope.abort(new GrpcError(GrpcCode.DeadlineExceeded, 'context deadline exceeded')),
          );
    try {
      const session = this.#standing ?? (await this.#connected(scope.signal));
      const stream = this.#open(session, rpc.path, options);
      const most = options.maxReceiveBytes ?? this.#o.maxReceiveBytes ?? DEFAULT_MAX_RECEIVE;
      const reader = new FrameReader(most, options.keepFieldBytes);
      const ended = exchange(stream, rpc.path, scope.signal, (chunk) => {
        for (const message of reader.push(chunk)) onMessage(decode(rpc.response, message));
      });
      stream.end(frame(encode(rpc.request, request)));
      await ended;
    } finally {
      timer?.cancel();
      scope.release();
    }
  }

  #open(session: ClientHttp2Session, path: string, { deadlineMs, metadata }: CallOptions): ClientHttp2Stream {
    const headers: Record<string, string> = {
      ':method': 'POST',
      ':path': path,
      ':authority': 'localhost',
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': this.#o.userAgent ?? 'kubelet-ts',
      ...metadata,
    };
    if (deadlineMs !== undefined) headers['grpc-timeout'] = grpcTimeout(deadlineMs);
    try {
      return session.request(headers);
    } catch (err) {
      throw unavailable(err);
    }
  }

  #connected(signal: AbortSignal): Promise<ClientHttp2Session> {
    this.#session ??= this.#connect();
    const session = this.#session;
    return new Promise((resolve, reject) => {
      const onAbort = (): void => reject(reasonOf(signal));
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      session.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
    });
  }

  #connect(): Promise<ClientHttp2Session> {
    const pending = new Promise<ClientHttp2Session>((resolve, reject) => {
      const { target, windowBytes = WINDOW_BYTES } = this.#o;
      const socket =
        'socketPath' in target ? connectSocket(target.socketPath) : connectSocket(target.port, target.host);
      const session = connectHttp2('http://localhost', {
        createConnection: () => socket,
        settings: { initialWindowSize: windowBytes, enablePush: false },
        maxSessionMemory: 256,
      });
      const timer = this.#clock.after(this.#o.connectTimeoutMs ?? 5000, () =>
        session.destroy(new Error('connect timed out')),
      );
      let made = false;
      const forget = (): void => {
        timer.cancel();
        if (this.#session === pending) this.#session = undefined;
        if (this.#standing === session) this.#standing = undefined;
        if (made) this.#o.onDisconnect?.();
        made = false;
      };
      session.on('connect', () => {
        timer.cancel();
        session.setLocalWindowSize(windowBytes);
        made = true;
        if (this.#session === pending) this.#standing = session;
        resolve(session);
      });
      session.on('error', (err) => {
        forget();
        reject(unavailable(err));
      });
      session.on('goaway', forget);
      session.on('close', () => {
        forget();
        reject(new GrpcError(GrpcCode.Unavailable, 'connection closed'));
      });
    });
    return pending;
  }
}

/** Resolves when the server ended the stream with status OK, rejects with its status or with what broke the stream. */
function exchange(
  stream: ClientHttp2Stream,
  path: string,
  signal: AbortSignal,
  onData: (chunk: Buffer) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let head: IncomingHttpHeaders = {};
    /** The same as the head where there was no body. */
    let trailers: IncomingHttpHeaders = head;
    let failure: Error | undefined;
    const fail = (err: Error): void => {
      failure ??= err;
      stream.close(constants.NGHTTP2_CANCEL);
      // A peer that stopped reading must not hold up a caller that gave up.
      reject(failure);
    };
    const onAbort = (): void => fail(reasonOf(signal));
    signal.addEventListener('abort', onAbort, { once: true });
    stream.on('response', (headers) => void (trailers = head = headers));
    stream.on('trailers', (headers) => void (trailers = headers));
    stream.on('data', (chunk: Buffer) => {
      try {
        onData(chunk);
      } catch (err) {
        fail(err instanceof GrpcError ? err : new GrpcError(GrpcCode.Internal, `${path}: ${messageOf(err)}`, err));
      }
    });
    stream.on('error', (err) => {
      failure ??= unavailable(err);
    });
    stream.on('close', () => {
      signal.removeEventListener('abort', onAbort);
      const error = failure ?? statusError(head, trailers, path);
      if (error === undefined) resolve();
      else reject(error);
    });
    if (signal.aborted) onAbort();
  });
}

const reasonOf = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new GrpcError(GrpcCode.Canceled, 'context canceled');

const unavailable = (err: unknown): GrpcError =>
  err instanceof GrpcError ? err : new GrpcError(GrpcCode.Unavailable, `connection error: ${messageOf(err)}`, err);

function statusError(head: IncomingHttpHeaders, trailers: IncomingHttpHeaders, path: string): GrpcError | undefined {
  const status = trailers['grpc-status'] ?? head['grpc-status'];
  if (status === undefined) {
    const http = head[':status'];
    // Headers came, trailers did not: the peer went away in the middle of its answer.
    return http === undefined || Number(http) === 200
      ? new GrpcError(GrpcCode.Unavailable, `${path}: the connection ended before the answer did`)
      : new GrpcError(GrpcCode.Unknown, `${path}: HTTP status ${http} without a gRPC status`);
  }
  const code = Number(status);
  return code === 0
    ? undefined
    : new GrpcError(code, decodeMessage(String(trailers['grpc-message'] ?? head['grpc-message'] ?? '')));
}

/** Undoes gRPC's percent encoding; what is not valid stays as it is. */
function decodeMessage(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    // Broken escapes are shown as they came: a readable error text matters more than its exact bytes.
    return text;
  }
}
