// One gRPC call as its caller sees it: it ends with the server's status, with what broke it, or at once when the caller has had
// enough.
import { messageOf } from '../errors.ts';
import type { ClientConnection } from '../http2/connection.ts';
import { fieldOf, type HeaderList } from '../http2/hpack-decoder.ts';
import { ErrorCode, ProtocolError } from '../http2/protocol-error.ts';
import type { Request, Stream, StreamEvents } from '../http2/stream.ts';
import { GrpcCode, GrpcError } from './status.ts';
import { httpStatusError, resetError } from './wire-errors.ts';

export class Call implements StreamEvents {
  /** Resolves when the server ended the call with status OK; rejects with its status or with what broke the call. */
  readonly ended: Promise<void>;
  readonly #path: string;
  readonly #signal: AbortSignal;
  readonly #onChunk: (chunk: Buffer) => void;
  readonly #onAbort = (): void => this.fail(reasonOf(this.#signal));
  #resolve: () => void = () => undefined;
  #reject: (err: Error) => void = () => undefined;
  #connection: ClientConnection | undefined;
  #stream: Stream | undefined;
  #resend: () => boolean = () => false;
  #isOver = false;
  #status: number | undefined;
  #head: HeaderList = [];
  /** The same as the head where there was no body. */
  #trailers: HeaderList = [];

  constructor(path: string, signal: AbortSignal, onChunk: (chunk: Buffer) => void) {
    this.#path = path;
    this.#signal = signal;
    this.#onChunk = onChunk;
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** The caller is not told of anything any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** `resend` sends a request anew that the server has not seen; returns false where it is not to be sent again. */
  open(connection: ClientConnection, request: Request, resend: () => boolean): void {
    if (this.#isOver) return;
    this.#resend = resend;
    this.#connection = connection;
    if (!connection.isRetired) this.#stream = connection.request(request, this);
    else if (!resend()) this.fail(unavailable(new Error('the server takes no more calls')));
  }

  /** A peer that stopped reading must not hold up a caller that gave up. */
  fail(err: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stream?.reset(ErrorCode.Cancel);
    this.#reject(err);
  }

  /** Always call it in the end. */
  release(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
  }

  onHead(status: number, headers: HeaderList): void {
    this.#status = status;
    this.#trailers = this.#head = headers;
  }

  onData(chunk: Buffer): void {
    if (this.#isOver) return;
    try {
      this.#onChunk(chunk);
    } catch (err) {
      this.fail(
        err instanceof GrpcError ? err : new GrpcError(GrpcCode.Internal, `${this.#path}: ${messageOf(err)}`, err),
      );
    }
  }

  onTrailers(headers: HeaderList): void {
    this.#trailers = headers;
  }

  onEnd(): void {
    this.#end(
      this.#statusError(() => new GrpcError(GrpcCode.Internal, 'server closed the stream without sending trailers')),
    );
  }

  onLost(code: number, error: Error | undefined): void {
    if (code === ErrorCode.RefusedStream && this.#status === undefined && this.#resend()) return;
    this.#end(this.#statusError(() => this.#lost(code, error)));
  }

  #end(error: GrpcError | undefined): void {
    this.#isOver = true;
    if (error === undefined) this.#resolve();
    else this.#reject(error);
  }

  /** The connection is gone, or the stream alone was reset, by the server or because it broke the protocol. */
  #lost(code: number, error: Error | undefined): GrpcError {
    if (this.#connection?.isClosed === true)
      return unavailable(error ?? new Error(`${this.#path}: the connection ended before the answer did`));
    return resetError(code, error instanceof ProtocolError ? error.message : undefined);
  }

  /** The status that the server sent; `otherwise` where there is none. */
  #statusError(otherwise: () => GrpcError): GrpcError | undefined {
    const status = this.#field('grpc-status');
    if (status === undefined)
      return this.#status === undefined || this.#status === 200 ? otherwise() : httpStatusError(this.#status);
    const code = Number(status);
    return code === 0 ? undefined : new GrpcError(code, decodeMessage(this.#field('grpc-message') ?? ''));
  }

  #field(name: string): string | undefined {
    return fieldOf(this.#trailers, name) ?? fieldOf(this.#head, name);
  }
}

const reasonOf = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new GrpcError(GrpcCode.Canceled, 'context canceled');

export const unavailable = (err: unknown): GrpcError =>
  err instanceof GrpcError ? err : new GrpcError(GrpcCode.Unavailable, `connection error: ${messageOf(err)}`, err);

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
