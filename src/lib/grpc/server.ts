// A gRPC server on a unix socket: for the APIs the kubelet itself serves (pod resources, device plugin registration).
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { messageOf } from '../errors.ts';
import { decode, encode } from '../proto/codec.ts';
import { frame, FrameReader } from './frame.ts';
import { GrpcMethods } from './methods.ts';
import { GrpcCode, GrpcError } from './status.ts';

const MAX_REQUEST_BYTES = 16 * 1024 * 1024;

export class GrpcServer extends GrpcMethods {
  readonly #sessions = new Set<ServerHttp2Session>();
  #server: Http2Server | undefined;

  listen(socketPath: string): Promise<void> {
    const server = createServer({ settings: { initialWindowSize: 1024 * 1024 } });
    this.#server = server;
    server.on('session', (session) => {
      this.#sessions.add(session);
      session.on('close', () => this.#sessions.delete(session));
      session.on('error', () => session.destroy());
    });
    server.on('stream', (stream: ServerHttp2Stream, headers) => void this.#serve(stream, String(headers[':path'])));
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
    let trailers: Record<string, string> = { 'grpc-status': '0' };
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers));
    try {
      const handler = this.handlerOf(path);
      const request = decode(handler.rpc.request, await readOne(stream));
      await handler.run(request, gone.signal, (message) => {
        if (!stream.destroyed) stream.write(frame(encode(handler.rpc.response, message)));
        return stream.writableLength;
      });
    } catch (err) {
      const code = err instanceof GrpcError ? err.code : GrpcCode.Unknown;
      trailers = {
        'grpc-status': String(code),
        'grpc-message': encodeURIComponent(messageOf(err)).replaceAll('%20', ' '),
      };
    }
    if (!stream.destroyed) stream.end();
  }
}

function readOne(stream: ServerHttp2Stream): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const reader = new FrameReader(MAX_REQUEST_BYTES);
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
