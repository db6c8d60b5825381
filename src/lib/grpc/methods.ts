// What a gRPC server answers: a handler for each method.
import type { Rpc } from './rpc.ts';
import { GrpcCode, GrpcError } from './status.ts';

/** Sends a message; returns how many bytes wait for the caller to read. */
type Respond = (message: unknown) => number;

type Handler = {
  readonly rpc: Rpc<unknown, unknown>;
  readonly run: (request: unknown, signal: AbortSignal, respond: Respond) => Promise<void>;
};

export class GrpcMethods {
  readonly #handlers = new Map<string, Handler>();

  unary<Req, Res>(rpc: Rpc<Req, Res>, handle: (request: Req, signal: AbortSignal) => Promise<Res>): void {
    this.#handlers.set(rpc.path, {
      rpc: rpc as Rpc<unknown, unknown>,
      run: async (request, signal, respond) => void respond(await handle(request as Req, signal)),
    });
  }

  serverStream<Req, Res>(
    rpc: Rpc<Req, Res>,
    handle: (request: Req, signal: AbortSignal, send: (message: Res) => number) => Promise<void>,
  ): void {
    this.#handlers.set(rpc.path, {
      rpc: rpc as Rpc<unknown, unknown>,
      run: (request, signal, respond) => handle(request as Req, signal, respond),
    });
  }

  protected handlerOf(path: string): Handler {
    const handler = this.#handlers.get(path);
    if (handler === undefined) throw new GrpcError(GrpcCode.Unimplemented, `unknown method ${path}`);
    return handler;
  }
}
