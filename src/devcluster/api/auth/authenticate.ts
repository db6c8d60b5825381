// Who is asking: a client certificate of the cluster's CA, a bearer token, or nobody in particular.
import { timingSafeEqual, type X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { parseTimeMs } from '../../../core/time.ts';
import type { Clock } from '../../../lib/clock.ts';
import { subjectOf } from '../../../lib/x509/certificate.ts';
import { connectionOf } from '../http-server.ts';
import { recordAt, textAt } from '../objects.ts';
import type { ObjectStore } from '../store.ts';
import type { User } from '../strategy.ts';
import { DEFAULT_AUDIENCES, identityOf, type TokenIdentity, type TokenIssuer } from './tokens.ts';

const ANONYMOUS: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

export type AuthenticateDeps = { readonly store: ObjectStore; readonly tokens: TokenIssuer; readonly clock: Clock };

export class Authenticator {
  readonly #deps: AuthenticateDeps;
  readonly #bySocket = new WeakMap<TLSSocket, User>();

  constructor(deps: AuthenticateDeps) {
    this.#deps = deps;
  }

  /** undefined: what was shown proves nothing, answer 401. */
  authenticate(request: IncomingMessage): User | undefined {
    const header = request.headers.authorization ?? '';
    const bearer = /^Bearer\s+(\S+)\s*$/i.exec(header)?.[1];
    const socket = connectionOf(request);
    const known = this.#bySocket.get(socket);
    if (known !== undefined) return known;
    const certificate = socket.getPeerX509Certificate();
    if (certificate !== undefined) {
      if (socket.authorized) return this.#certified(socket, certificate);
      if (bearer === undefined) return undefined;
    }
    if (bearer !== undefined) {
      const identity = this.identify(bearer);
      const known = identity?.audiences.some((a) => DEFAULT_AUDIENCES.includes(a)) === true;
      return known ? identity?.user : undefined;
    }
    return header === '' ? ANONYMOUS : undefined;
  }

  #certified(socket: TLSSocket, certificate: X509Certificate): User | undefined {
    const { commonName, organizations } = subjectOf(certificate);
    if (commonName === '') return undefined;
    const fingerprint = certificate.fingerprint256.replaceAll(':', '').toLowerCase();
    const user = {
      name: commonName,
      groups: [...organizations, 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] },
    };
    this.#bySocket.set(socket, user);
    return user;
  }

  /** Whom a bearer token speaks for, and to whom it is addressed. */
  identify(token: string): TokenIdentity | undefined {
    const bootstrap = /^([a-z0-9]{6})\.([a-z0-9]{16})$/.exec(token);
    if (bootstrap !== null) return this.#bootstrapper(bootstrap[1] ?? '', bootstrap[2] ?? '');
    let claims;
    try {
      claims = this.#deps.tokens.verify(token);
    } catch {
      // Not even shaped like a token.
      return undefined;
    }
    return claims === undefined ? undefined : identityOf(claims, this.#deps.store);
  }

  /** Tokens for nodes that have no certificate yet: secrets of type bootstrap.kubernetes.io/token. */
  #bootstrapper(id: string, secret: string): TokenIdentity | undefined {
    const stored = this.#deps.store.get('secrets', `kube-system/bootstrap-token-${id}`);
    if (stored === undefined || stored.object['type'] !== 'bootstrap.kubernetes.io/token') return undefined;
    const data = recordAt(stored.object, 'data');
    const read = (key: string): string => Buffer.from(textAt(data, key), 'base64').toString();
    const expected = Buffer.from(read('token-secret'));
    if (expected.length !== secret.length || !timingSafeEqual(expected, Buffer.from(secret))) return undefined;
    const expiration = read('expiration');
    if (expiration !== '' && parseTimeMs(expiration) < this.#deps.clock.now()) return undefined;
    if (read('usage-bootstrap-authentication') !== 'true') return undefined;
    const extra = read('auth-extra-groups').split(',').filter(Boolean);
    const groups = ['system:bootstrappers', ...extra, 'system:authenticated'];
    return { user: { name: `system:bootstrap:${id}`, groups }, audiences: DEFAULT_AUDIENCES };
  }
}
