// A gRPC server on a unix socket: for the APIs the kubelet itself serves (pod resources, device plugin registration).
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { messageOf } from '../errors.ts';
import { decode, encode } from '../proto/codec.ts';
import { frame, FrameReader } from './frame.ts';
import { GrpcMethods } from './methods.ts';
import { GrpcCode, GrpcError } from './status.ts';

/** As in grpc-go. */
const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
/** A status text is a header field: a client refuses a head that is too large, and Node a frame. */
const MAX_STATUS_CHARACTERS = 4096;

export class GrpcServer extends GrpcMethods {
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #maxRequestBytes: number;
  #server: Http2Server | undefined;

  constructor({ maxRequestBytes = MAX_REQUEST_BYTES }: { readonly maxRequestBytes?: number } = {}) {
    super();
    this.#maxRequestBytes = maxRequestBytes;
  }

  listen(socketPath: string): Promise<void> {
    const server = createServer({ settings: { initialWindowSize: 1024 * 1024 } });
    this.#server = server;
    server.on('session', (session) => {
      this.#sessions.add(session);
      session.on('close', () => this.#sessions.delete(session));
      session.on('error', () => session.destroy());
    });
    server.on('stream', (stream: ServerHttp2Stream, headers) => {
      this.#serve(stream, String(headers[':path'])).catch(() => stream.destroy()); // the caller went away meanwhile
    });
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(socketPath, resolve);
    });
  }

  close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const session of this.#sessions) session.destroy();
    return new Promise((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  }

  async #serve(stream: ServerHttp2Stream, path: string): Promise<void> {
    const gone = new AbortController();
    stream.on('close', () => gone.abort(new GrpcError(GrpcCode.Canceled, 'the caller went away')));
    stream.on('error', () => undefined);
    let trailers: Readonly<Record<string, string>> = { 'grpc-status': '0' };
    stream.on('wantTrailers', () => {
      if (!stream.destroyed && !stream.closed) stream.sendTrailers({ ...trailers });
    });
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    try {
      const handler = this.handlerOf(path);
      const request = decode(handler.rpc.request, await readOne(stream, this.#maxRequestBytes));
      await handler.run(request, gone.signal, (message) => {
        if (!stream.destroyed) stream.write(frame(encode(handler.rpc.response, message)));
        return stream.writableLength;
      });
    } catch (err) {
      trailers = statusTrailers(err);
    }
    if (!stream.destroyed) stream.end();
  }
}

/** The status of a failed call. Never throws: half a surrogate pair, which no encoding has, becomes U+FFFD. */
function statusTrailers(err: unknown): Readonly<Record<string, string>> {
  const code = err instanceof GrpcError ? err.code : GrpcCode.Unknown;
  const text = messageOf(err).slice(0, MAX_STATUS_CHARACTERS).toWellFormed();
  return { 'grpc-status': String(code), 'grpc-message': encodeURIComponent(text).replaceAll('%20', ' ') };
}

function readOne(stream: ServerHttp2Stream, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const reader = new FrameReader(maxBytes);
    let first: Buffer | undefined;
    stream.on('data', (chunk: Buffer) => {
      try {
        for (const message of reader.push(chunk)) first ??= message;
      } catch (err) {
        reject(err instanceof Error ? err : new Error(messageOf(err)));
      }
    });
    stream.on('end', () =>
      first === undefined ? reject(new GrpcError(GrpcCode.Internal, 'no request message')) : resolve(first),
    );
    stream.on('close', () => reject(new GrpcError(GrpcCode.Canceled, 'the caller went away')));
  });
}
