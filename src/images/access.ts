// Who may use an image that is already on the node: only pods that show credentials with which it was pulled, where the
// policy demands it. Pure.
import { createHash } from 'node:crypto';
import { goJson } from '../core/go-json.ts';
import type { Credential } from './keyring.ts';

export type VerificationPolicy =
  | 'NeverVerify'
  | 'NeverVerifyPreloadedImages'
  | 'NeverVerifyAllowlistedImages'
  | 'AlwaysVerify';

export type SecretAccess = {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly credentialHash: string;
};
export type ServiceAccountAccess = { readonly uid: string; readonly namespace: string; readonly name: string };

export type ImageAccess = {
  readonly kubernetesSecrets?: readonly SecretAccess[];
  readonly kubernetesServiceAccounts?: readonly ServiceAccountAccess[];
  readonly nodePodsAccessible?: boolean;
};

/** Access by name, as pods write it but without tag and digest, of one pulled image. */
export type AccessMap = Readonly<Record<string, ImageAccess>>;

export type AccessResult = 'credentialPolicyAllowed' | 'credentialRecordFound' | 'mustAuthenticate';

/** What one successful pull with these credentials (or none) entitles to. */
export function accessOf(credential: Credential | undefined): ImageAccess {
  if (credential === undefined || credential.source.from === 'node') return { nodePodsAccessible: true };
  const { from, uid, namespace, name } = credential.source;
  return from === 'secret'
    ? { kubernetesSecrets: [{ uid, namespace, name, credentialHash: hashLogin(credential) }] }
    : { kubernetesServiceAccounts: [{ uid, namespace, name }] };
}

/** Of what the Go kubelet makes it of, so that either knows the records of the other. */
const hashLogin = ({ username, password, email = '' }: Credential): string => {
  const fields = Object.entries({ username, password, email }).filter(([, text]) => text !== '');
  return createHash('sha256')
    .update(goJson(Object.fromEntries(fields)))
    .digest('hex');
};

const MAX_RECORDED = 100;

/** Whether a secret that a pod showed for an image that is here is recorded as well; one that it was pulled with always is. */
export const mayRecord = ({ kubernetesSecrets = [] }: ImageAccess): boolean => kubernetesSecrets.length < MAX_RECORDED;

const sameObject = (a: ServiceAccountAccess, b: ServiceAccountAccess): boolean =>
  a.uid === b.uid && a.namespace === b.namespace && a.name === b.name;

/** Adds to what is known; node-wide access makes the rest superfluous. */
export function mergeAccess(known: ImageAccess | undefined, added: ImageAccess): ImageAccess {
  if (known === undefined || added.nodePodsAccessible === true) return added;
  if (known.nodePodsAccessible === true) return known;
  const secrets = [...(known.kubernetesSecrets ?? [])];
  for (const secret of added.kubernetesSecrets ?? []) {
    const at = secrets.findIndex((s) => sameObject(s, secret));
    if (at >= 0) secrets[at] = secret;
    else secrets.push(secret);
  }
  const accounts = [...(known.kubernetesServiceAccounts ?? [])];
  for (const account of added.kubernetesServiceAccounts ?? [])
    if (!accounts.some((a) => sameObject(a, account))) accounts.push(account);
  // The oldest go: namespaces come and go while the image of a sidecar stays.
  return {
    ...(secrets.length > 0 ? { kubernetesSecrets: secrets.slice(-MAX_RECORDED) } : {}),
    ...(accounts.length > 0 ? { kubernetesServiceAccounts: accounts.slice(-MAX_RECORDED) } : {}),
  };
}

/** `image`: as the pod wrote it, without tag and digest; `preloaded`: the kubelet has no record of pulling it. */
export function mustVerify(
  policy: VerificationPolicy,
  allowlist: readonly string[],
  image: string,
  preloaded: boolean,
): boolean {
  switch (policy) {
    case 'NeverVerify':
      return false;
    case 'NeverVerifyPreloadedImages':
      return !preloaded;
    case 'NeverVerifyAllowlistedImages':
      return !(preloaded && allowlist.some((pattern) => inAllowlist(pattern, image)));
    case 'AlwaysVerify':
      return true;
  }
}

const inAllowlist = (pattern: string, image: string): boolean =>
  pattern.endsWith('/*') ? image.startsWith(pattern.slice(0, -1)) : pattern === image;

/** Whether one of the pod's credentials is among those the image was pulled with. */
export function grants(access: ImageAccess | undefined, credentials: readonly Credential[]): boolean {
  if (access === undefined) return false;
  if (access.nodePodsAccessible === true) return true;
  return credentials.some((credential) => {
    const shown = accessOf(credential);
    const secret = shown.kubernetesSecrets?.[0];
    if (secret !== undefined)
      return (access.kubernetesSecrets ?? []).some(
        (s) => (s.credentialHash !== '' && s.credentialHash === secret.credentialHash) || sameObject(s, secret),
      );
    const account = shown.kubernetesServiceAccounts?.[0];
    return account !== undefined && (access.kubernetesServiceAccounts ?? []).some((a) => sameObject(a, account));
  });
}
