// Asks the cluster for a certificate: posts a CertificateSigningRequest and waits until somebody decided.
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { createSigningRequest } from '../lib/x509/csr.ts';
import type { KeyPair } from '../lib/x509/keys.ts';
import { Reflector, type ListWatchClient } from '../kube/reflector.ts';
import { SIGNING_REQUESTS, type CertificateSigningRequest, type Resource, type Where } from '../kube/resources.ts';

export interface SigningClient extends ListWatchClient {
  get<T>(resource: Resource<T>, where: Where & { readonly name: string }, signal: AbortSignal): Promise<T>;
  create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
}

export type CertificateTemplate = {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
};

export type SigningAsk = {
  readonly template: CertificateTemplate;
  readonly signerName: string;
  readonly usages: readonly string[];
  /** A fixed name is reused when the server has it already; without one the server makes it up. */
  readonly name?: string;
  readonly waitMs: number;
  /** The server did not take the request. */
  readonly onRefused?: (err: unknown) => void;
};

export const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
export const SERVING_SIGNER = 'kubernetes.io/kubelet-serving';

/** `key encipherment` belongs to RSA keys only. */
export const usagesFor = (keys: KeyPair, auth: 'client auth' | 'server auth'): readonly string[] => [
  'digital signature',
  ...(keys.publicKey.asymmetricKeyType === 'rsa' ? ['key encipherment'] : []),
  auth,
];

/** The issued certificate chain as PEM text. */
export async function requestCertificate(
  deps: { client: SigningClient; clock: Clock; log: Logger },
  ask: SigningAsk,
  keys: KeyPair,
  signal: AbortSignal,
): Promise<string> {
  const { commonName, organizations, dnsNames, ipAddresses } = ask.template;
  const pem = createSigningRequest({ subject: { commonName, organizations }, dnsNames, ipAddresses }, keys);
  const name = await post(deps.client, ask, pem, signal);
  deps.log.info('waiting for a certificate', { request: name, signer: ask.signerName });
  return await withDeadline(deps.clock, signal, ask.waitMs, (s) => issued(deps, name, s));
}

async function post(client: SigningClient, ask: SigningAsk, pem: string, signal: AbortSignal): Promise<string> {
  const body = {
    kind: 'CertificateSigningRequest',
    apiVersion: 'certificates.k8s.io/v1',
    metadata: ask.name === undefined ? { generateName: 'csr-' } : { name: ask.name },
    spec: { request: Buffer.from(pem, 'utf8').toString('base64'), signerName: ask.signerName, usages: ask.usages },
  };
  try {
    return (await client.create(SIGNING_REQUESTS, {}, body, signal)).metadata.name;
  } catch (err) {
    if (isFault(err, 'exists') && ask.name !== undefined) return ask.name; // made from the key, so the request is ours
    ask.onRefused?.(err);
    throw err;
  }
}

/** The certificate, a failure, or undefined while nobody has decided. */
export function decisionOf({ status }: CertificateSigningRequest): string | KubeletError | undefined {
  for (const condition of status?.conditions ?? []) {
    const verb = condition.type === 'Denied' ? 'is denied' : condition.type === 'Failed' ? 'failed' : undefined;
    if (verb === undefined) continue;
    const { reason = '', message = '' } = condition;
    const text = `certificate signing request ${verb}, reason: ${reason}, message: ${message}`;
    return new KubeletError('denied', text);
  }
  const encoded = status?.certificate ?? '';
  return encoded === '' ? undefined : Buffer.from(encoded, 'base64').toString('utf8');
}

async function issued(
  deps: { client: SigningClient; clock: Clock; log: Logger },
  name: string,
  signal: AbortSignal,
): Promise<string> {
  const own = new AbortController();
  const up = (): void => own.abort(signal.reason);
  signal.addEventListener('abort', up, { once: true });
  const reflector = new Reflector<CertificateSigningRequest>(deps, {
    name: `signing request ${name}`,
    resource: SIGNING_REQUESTS,
    fieldSelector: `metadata.name=${name}`,
  });
  let decision: string | KubeletError | undefined;
  reflector.subscribe(() => {
    const request = reflector.store.byName(undefined, name);
    if (request !== undefined) decision = decisionOf(request);
    else if (reflector.synced) decision = new KubeletError('notFound', `signing request ${name} was deleted`);
    if (decision !== undefined) own.abort();
  });
  try {
    await reflector.run(own.signal);
  } finally {
    signal.removeEventListener('abort', up);
  }
  if (typeof decision === 'string') return decision;
  signal.throwIfAborted();
  throw decision ?? new KubeletError('internal', 'waiting for a certificate ended early');
}
