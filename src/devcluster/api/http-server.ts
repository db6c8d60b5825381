// The HTTPS server itself: HTTP/2 for those who speak it, HTTP/1.1 for the rest and for connections that are upgraded.
import { constants } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, type Http2ServerRequest } from 'node:http2';
import type { Server } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** What kube-apiserver allows unless it is told otherwise. */
const MAX_STREAMS = 100;

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export function createHttpServer(tls: { cert: string; key: string; ca: string }, handle: Handler): Server {
  const server = createSecureServer({
    ...tls,
    requestCert: true,
    rejectUnauthorized: false,
    allowHTTP1: true,
    // A resumed session carries no client certificate to look at.
    secureOptions: constants.SSL_OP_NO_TICKET,
    settings: { maxConcurrentStreams: MAX_STREAMS },
  });
  // These belong to the HTTP/1.1 half, which the types do not show.
  Object.assign(server, { requestTimeout: 0, headersTimeout: 30_000, keepAliveTimeout: 120_000 });
  // Requests and answers of both versions have the same form as far as this server uses them.
  server.on('request', (request, response) =>
    handle(request as unknown as IncomingMessage, response as unknown as ServerResponse),
  );
  // A client that breaks its connection concerns nobody else.
  server.on('sessionError', () => undefined);
  return server;
}

/** The connection a request came on; all requests of an HTTP/2 connection have the same one. */
export function connectionOf(request: IncomingMessage): TLSSocket {
  const { stream } = request as unknown as Partial<Http2ServerRequest>;
  return (stream?.session?.socket ?? request.socket) as TLSSocket;
}
