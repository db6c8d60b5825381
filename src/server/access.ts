// From the configuration's words to a guard: which credentials count, and who decides what they may do.
import type { Environment } from '../config/environment.ts';
import { KubeletError } from '../lib/errors.ts';
import { bearerToken, clientCertificate, type TokenAuthority } from './authenticators.ts';
import { Guard, type Authenticator, type Authorizer } from './guard.ts';
import { everybody, knownUsersOnly, localRoot, type PeerOf } from './standalone-access.ts';

export type AccessOptions = {
  readonly nodeName: string;
  readonly clientCa: boolean;
  readonly webhookAuthentication: boolean;
  readonly anonymous: boolean;
  /** `authorization.mode` */
  readonly mode: string;
  /** --strict-stream-authorization; always so without an API server. */
  readonly strictStreams: boolean;
};
export type AccessDeps = {
  readonly nowMs: () => number;
  /** The API server's word on tokens and permissions; absent on a node without one. */
  readonly cluster?: { readonly tokens: TokenAuthority; readonly access: Authorizer };
  readonly peerOf?: PeerOf;
  /** How long the certificate of each caller that shows one is still good. */
  readonly onCertificateLifetime?: (leftMs: number) => void;
};

export const accessOptions = ({
  config,
  flags,
  nodeName,
}: Pick<Environment, 'config' | 'flags' | 'nodeName'>): AccessOptions => ({
  nodeName,
  clientCa: config.authentication.x509.clientCAFile !== '',
  webhookAuthentication: config.authentication.webhook.enabled,
  anonymous: config.authentication.anonymous.enabled,
  mode: config.authorization.mode,
  strictStreams: flags.strictStreamAuthorization,
});

/** Rejects configurations with which nobody could be let in, in upstream's words. */
export function buildGuard(deps: AccessDeps, o: AccessOptions): Guard {
  const standalone = deps.cluster === undefined;
  return new Guard(
    { authenticators: authenticatorsFor(deps, o), authorizer: authorizerFor(deps, o.mode) },
    { nodeName: o.nodeName, anonymous: o.anonymous, strictStreams: standalone || o.strictStreams },
  );
}

function authenticatorsFor(deps: AccessDeps, o: AccessOptions): readonly Authenticator[] {
  const { cluster, peerOf, nowMs, onCertificateLifetime } = deps;
  const found: Authenticator[] = [];
  if (o.clientCa) found.push(clientCertificate(nowMs, onCertificateLifetime));
  if (cluster === undefined) found.push(localRoot(peerOf));
  else if (o.webhookAuthentication) found.push(bearerToken(cluster.tokens));
  if (found.length === 0 && !o.anonymous) throw new KubeletError('invalid', 'no authentication method configured');
  return found;
}

function authorizerFor({ cluster }: AccessDeps, mode: string): Authorizer {
  if (mode === 'AlwaysAllow') return everybody;
  if (mode === 'Webhook') return cluster?.access ?? knownUsersOnly;
  throw new KubeletError(
    'invalid',
    mode === '' ? 'no authorization mode specified' : `unknown authorization mode ${mode}`,
  );
}

/** Without an API server and without a client CA only this machine can be told apart from the rest of the world. */
export const loopbackOnly = (o: Pick<AccessOptions, 'clientCa' | 'mode'>, standalone: boolean): boolean =>
  standalone && !o.clientCa && o.mode !== 'AlwaysAllow';
