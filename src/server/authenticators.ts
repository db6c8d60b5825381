// The ways to show who one is: a client certificate, or a bearer token (in the header, or as a WebSocket subprotocol).
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { KubeletError } from '../lib/errors.ts';
import type { Authenticator } from './guard.ts';
import type { UserInfo } from './user.ts';

/**
 * The TLS layer has checked the certificate against the client CA when the connection was made; one it did not accept is
 * a bad credential, and so is one that expired since.
 */
export const clientCertificate =
  (nowMs: () => number, onLifetime: (leftMs: number) => void = () => undefined): Authenticator =>
  async ({ socket }) => {
    if (!(socket instanceof TLSSocket)) return undefined;
    const certificate = socket.getPeerCertificate();
    if (certificate.raw === undefined) return undefined;
    if (Date.parse(certificate.valid_to) < nowMs())
      throw new KubeletError('denied', 'the client certificate has expired');
    if (!socket.authorized) throw new KubeletError('denied', 'the client certificate is not of the client CA');
    onLifetime(Date.parse(certificate.valid_to) - nowMs());
    // Of several the last counts, as in Go's certificates: the API server must not see another user than we do.
    const commonName = list(certificate.subject?.CN).at(-1);
    if (commonName === undefined || commonName === '') return undefined;
    return {
      username: commonName,
      groups: list(certificate.subject.O),
      extra: {
        'authentication.kubernetes.io/credential-id': [
          `X509SHA256=${createHash('sha256').update(certificate.raw).digest('hex')}`,
        ],
      },
    };
  };

const list = (value: string | string[] | undefined): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

export const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.';

function bearerOf(request: IncomingMessage): string | undefined {
  const header = /^bearer +(\S+)\s*$/i.exec(request.headers.authorization ?? '');
  if (header?.[1] !== undefined) return header[1];
  const protocols = String(request.headers['sec-websocket-protocol'] ?? '').split(',');
  const token = protocols.map((p) => p.trim()).find((p) => p.startsWith(TOKEN_PROTOCOL));
  return token === undefined
    ? undefined
    : Buffer.from(token.slice(TOKEN_PROTOCOL.length), 'base64url').toString('utf8');
}

export interface TokenAuthority {
  authenticate(token: string, signal: AbortSignal): Promise<UserInfo | undefined>;
}

export const bearerToken =
  (authority: TokenAuthority): Authenticator =>
  async (request, signal) => {
    const token = bearerOf(request);
    if (token === undefined || token === '') return undefined;
    const user = await authority.authenticate(token, signal);
    if (user === undefined) throw new KubeletError('denied', 'the token is not known');
    return user;
  };
