// Service account tokens: JWTs bound to the account and, when asked, to a pod, secret or node. A token dies with what it
// is bound to. Signed with ES256, which costs a twentieth of RS256; a cluster that has an RSA key from before keeps it.
import { createHash, randomUUID, sign, verify, type KeyObject, type SignKeyObjectInput } from 'node:crypto';
import type { Clock } from '../../../lib/clock.ts';
import { isJson, keyOf, recordAt, textAt, textsAt, type Json } from '../objects.ts';
import type { ObjectStore, StoredObject } from '../store.ts';
import type { User } from '../strategy.ts';

const ISSUER = 'https://kubernetes.default.svc.cluster.local';
export const DEFAULT_AUDIENCES = [ISSUER];
const MIN_WARN_AFTER_SECONDS = 3607;

export type TokenBinding = { readonly kind: 'Pod' | 'Secret' | 'Node'; readonly name: string; readonly uid: string };
export type TokenGrant = {
  readonly account: StoredObject;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  readonly binding?: TokenBinding;
  /** The node of a bound pod. */
  readonly node?: { readonly name: string; readonly uid: string };
};

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** JOSE has the two numbers of an elliptic signature side by side; RSA has no second way. */
const asJose = (key: KeyObject): SignKeyObjectInput => ({ key, dsaEncoding: 'ieee-p1363' });

export class TokenIssuer {
  readonly #key: KeyObject;
  readonly #publicKey: KeyObject;
  readonly #clock: Clock;
  readonly #keyId: string;
  readonly #algorithm: 'ES256' | 'RS256';
  readonly #maxSeconds: number;

  constructor(key: KeyObject, publicKey: KeyObject, clock: Clock, maxSeconds = Infinity) {
    this.#maxSeconds = maxSeconds;
    this.#key = key;
    this.#publicKey = publicKey;
    this.#clock = clock;
    this.#algorithm = key.asymmetricKeyType === 'ec' ? 'ES256' : 'RS256';
    this.#keyId = createHash('sha256')
      .update(publicKey.export({ type: 'spki', format: 'der' }))
      .digest('base64url');
  }

  issue(grant: TokenGrant): { token: string; expiresMs: number; seconds: number } {
    const seconds = Math.min(grant.expirationSeconds, this.#maxSeconds);
    const now = Math.floor(this.#clock.now() / 1000);
    const { name, namespace = '', uid = '' } = grant.account.object.metadata;
    const bound = grant.binding === undefined ? {} : { [grant.binding.kind.toLowerCase()]: refOf(grant.binding) };
    const claims = {
      aud: grant.audiences,
      exp: now + seconds,
      iat: now,
      iss: ISSUER,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace,
        ...(grant.node === undefined ? {} : { node: grant.node }),
        ...bound,
        serviceaccount: { name, uid },
        ...(seconds > MIN_WARN_AFTER_SECONDS ? { warnafter: now + MIN_WARN_AFTER_SECONDS } : {}),
      },
      nbf: now,
      sub: `system:serviceaccount:${namespace}:${name}`,
    };
    const text = `${encode({ alg: this.#algorithm, kid: this.#keyId })}.${encode(claims)}`;
    const signature = sign('sha256', Buffer.from(text), asJose(this.#key)).toString('base64url');
    return { token: `${text}.${signature}`, expiresMs: claims.exp * 1000, seconds };
  }

  /** The claims of a token this server signed that is valid now, whatever it is bound to. */
  verify(token: string): Json | undefined {
    const [header = '', body = '', signature = '', ...more] = token.split('.');
    if (more.length > 0 || signature === '') return undefined;
    const text = Buffer.from(`${header}.${body}`);
    if (!verify('sha256', text, asJose(this.#publicKey), Buffer.from(signature, 'base64url'))) return undefined;
    const claims: unknown = JSON.parse(Buffer.from(body, 'base64url').toString());
    if (!isJson(claims) || claims['iss'] !== ISSUER) return undefined;
    const now = this.#clock.now() / 1000;
    if (!(Number(claims['exp']) > now && Number(claims['nbf']) <= now + 60)) return undefined;
    return claims;
  }
}

const refOf = ({ name, uid }: TokenBinding): { name: string; uid: string } => ({ name, uid });

export type TokenIdentity = { readonly user: User; readonly audiences: readonly string[] };

/** Who a verified token speaks for; undefined once its account or what it is bound to is gone. */
export function identityOf(claims: Json, store: ObjectStore): TokenIdentity | undefined {
  const own = recordAt(claims, 'kubernetes.io');
  const namespace = textAt(own, 'namespace');
  const account = store.get('serviceaccounts', keyOf(namespace, textAt(own, 'serviceaccount', 'name')));
  if (account === undefined || account.object.metadata.uid !== textAt(own, 'serviceaccount', 'uid')) return undefined;
  for (const [field, storage] of [
    ['pod', 'pods'],
    ['secret', 'secrets'],
  ] as const) {
    const name = textAt(own, field, 'name');
    if (name === '') continue;
    if (store.get(storage, keyOf(namespace, name))?.object.metadata.uid !== textAt(own, field, 'uid')) return undefined;
  }
  const podName = textAt(own, 'pod', 'name');
  const nodeName = textAt(own, 'node', 'name');
  const extra: Record<string, readonly string[]> = {
    'authentication.kubernetes.io/credential-id': [`JTI=${textAt(claims, 'jti')}`],
    ...(nodeName === ''
      ? {}
      : {
          'authentication.kubernetes.io/node-name': [nodeName],
          'authentication.kubernetes.io/node-uid': [textAt(own, 'node', 'uid')],
        }),
    ...(podName === ''
      ? {}
      : {
          'authentication.kubernetes.io/pod-name': [podName],
          'authentication.kubernetes.io/pod-uid': [textAt(own, 'pod', 'uid')],
        }),
  };
  return {
    audiences: textsAt(claims, 'aud'),
    user: {
      name: textAt(claims, 'sub'),
      uid: account.object.metadata.uid ?? '',
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      extra,
    },
  };
}
