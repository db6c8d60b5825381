// A gRPC client over one HTTP/2 connection to a unix socket (or host and port). It connects when a call needs it, so a
// restarted peer is found by the very next call; callers decide about retries. Nothing here polls.
import { connect as connectSocket, type OnReadOpts, type Socket } from 'node:net';
import { abortable } from '../abort.ts';
import type { Clock } from '../clock.ts';
import { ClientConnection } from '../http2/connection.ts';
import type { Request } from '../http2/stream.ts';
import { decode, encode } from '../proto/codec.ts';
import { Call, unavailable } from './call.ts';
import { frame, FrameReader } from './frame.ts';
import { CallHeaders } from './call-headers.ts';
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

/** As in grpc-go. Two bytes on the wire may become an object of a hundred, so an answer is not let grow without a reason. */
const DEFAULT_MAX_RECEIVE = 4 * 1024 * 1024;
const WINDOW_BYTES = 8 * 1024 * 1024;
const RECEIVE_BYTES = 64 * 1024;
/** How often a call is sent again that the server has not seen. */
const MAX_RESENDS = 4;

export class GrpcChannel {
  readonly #clock: Clock;
  readonly #o: ChannelOptions;
  readonly #headers: CallHeaders;
  #connection: Promise<ClientConnection> | undefined;
  /** The same once it stands: nearly every call finds it so, and need not wait. */
  #standing: ClientConnection | undefined;
  /** Ends the connection that is being made. */
  #abandon: (err: Error) => void = () => undefined;
  #closings = 0;

  constructor(clock: Clock, options: ChannelOptions) {
    this.#clock = clock;
    this.#o = options;
    this.#headers = new CallHeaders(options.userAgent ?? 'kubelet-ts');
  }

  /** Resolves when there is a connection; fails where the first call would for want of one. */
  async connect(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await abortable(signal, this.#connected());
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
    const connection = this.#connection;
    this.#closings++;
    this.#connection = undefined;
    this.#standing = undefined;
    this.#abandon(new Error('the channel was closed'));
    // A failed connect has nothing to close.
    connection?.then((c) => c.destroy()).catch(() => undefined);
  }

  async #call<Req, Res>(
    rpc: Rpc<Req, Res>,
    request: Req,
    options: CallOptions,
    onMessage: (message: Res) => void,
  ): Promise<void> {
    options.signal.throwIfAborted();
    const { deadlineMs, metadata, keepFieldBytes } = options;
    const most = options.maxReceiveBytes ?? this.#o.maxReceiveBytes ?? DEFAULT_MAX_RECEIVE;
    const reader = new FrameReader(most, keepFieldBytes);
    const call = new Call(rpc.path, options.signal, (chunk) => {
      for (const message of reader.push(chunk)) {
        onMessage(decode(rpc.response, message));
        if (call.isOver) return;
      }
    });
    const timer =
      deadlineMs === undefined
        ? undefined
        : this.#clock.after(deadlineMs, () =>
            call.fail(new GrpcError(GrpcCode.DeadlineExceeded, 'context deadline exceeded')),
          );
    try {
      const block = this.#headers.of(rpc.path, deadlineMs, metadata);
      const body = frame(encode(rpc.request, request));
      this.#send(call, { block, body });
      await call.ended;
    } finally {
      timer?.cancel();
      call.release();
    }
  }

  /** A request that the server has not seen is sent again, on this or on another connection. */
  #send(call: Call, request: Request, closings = this.#closings, resends = 0): void {
    const resend = (): boolean => {
      if (resends === MAX_RESENDS || this.#closings !== closings) return false;
      this.#send(call, request, closings, resends + 1);
      return true;
    };
    if (this.#standing !== undefined) call.open(this.#standing, request, resend);
    else
      this.#connected().then(
        (connection) => call.open(connection, request, resend),
        (err: unknown) => call.fail(unavailable(err)),
      );
  }

  #connected(): Promise<ClientConnection> {
    return (this.#connection ??= this.#connect());
  }

  /** A connection stands when the server's settings are there: only then is known how many calls it takes at a time. */
  #connect(): Promise<ClientConnection> {
    const { windowBytes = WINDOW_BYTES, connectTimeoutMs = 5000 } = this.#o;
    const { promise, resolve, reject } = Promise.withResolvers<ClientConnection>();
    let connection: ClientConnection | undefined;
    const socket = this.#dial((chunk) => connection?.receive(chunk));
    let isMade = false;
    const forget = (): void => {
      if (this.#connection === promise) this.#connection = undefined;
      if (this.#standing !== undefined && this.#standing === connection) this.#standing = undefined;
      if (isMade) this.#o.onDisconnect?.();
      isMade = false;
    };
    const fail = (err: Error): void => {
      timer.cancel();
      if (connection === undefined) socket.destroy();
      else connection.destroy(err);
      forget();
      reject(unavailable(err));
    };
    this.#abandon = fail;
    const timer = this.#clock.after(connectTimeoutMs, () => fail(new Error('connect timed out')));
    socket.on('error', fail);
    socket.once('connect', () => {
      socket.off('error', fail);
      const made = ClientConnection.on(
        socket,
        { streamWindow: windowBytes, connectionWindow: windowBytes, isShared: true },
        {
          onReady: () => {
            timer.cancel();
            isMade = true;
            if (this.#connection === promise) this.#standing = made;
            this.#abandon = () => undefined;
            resolve(made);
          },
          onRetired: forget,
          onClose: (err) => fail(err ?? new Error('error reading server preface: EOF')),
        },
      );
      connection = made;
    });
    return promise;
  }

  /** All sockets are read into one buffer: each chunk is done with before the next one is read. */
  #dial(onChunk: (chunk: Buffer) => void): Socket {
    const { target } = this.#o;
    const buffer = (received ??= Buffer.allocUnsafeSlow(RECEIVE_BYTES));
    const onread: OnReadOpts = {
      buffer,
      callback: (bytes) => {
        onChunk(buffer.subarray(0, bytes));
        return true;
      },
    };
    return connectSocket('socketPath' in target ? { path: target.socketPath, onread } : { ...target, onread });
  }
}

let received: Buffer | undefined;
