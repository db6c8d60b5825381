// The cluster's keys and certificates on disk: one CA, the server's certificate, the key that signs service account
// tokens, the certificate the server shows to the kubelet. Made once, kept over restarts, renewed when they run out.
import { X509Certificate, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../../lib/atomic-file.ts';
import type { Clock } from '../../../lib/clock.ts';
import { errnoOf } from '../../../lib/errors.ts';
import {
  issueCertificate,
  keyMatches,
  selfSignedAuthority,
  type ExtendedUsage,
} from '../../../lib/x509/certificate.ts';
import { newKeyPair, privateKeyPem } from '../../../lib/x509/keys.ts';
import type { AlternativeNames, Subject } from '../../../lib/x509/names.ts';

const DAY_MS = 86_400_000;
const CA_DAYS = 3650;
const LEAF_DAYS = 365;

export type Credential = { readonly certificatePem: string; readonly keyPem: string };

export interface ClusterPki {
  readonly caPem: string;
  readonly server: Credential;
  readonly kubeletClient: Credential;
  readonly tokenKey: KeyObject;
  readonly tokenPublicKey: KeyObject;
  issueClient(subject: Subject): Credential;
  issueServing(subject: Subject, names: AlternativeNames): Credential;
  /** A certificate for somebody else's key. */
  sign(
    request: {
      subject: Subject;
      publicKey: KeyObject;
      usages: readonly ExtendedUsage[];
      days?: number;
    } & AlternativeNames,
  ): string;
}

export type PkiOptions = {
  readonly directory: string;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
};

export async function openPki(clock: Clock, options: PkiOptions): Promise<ClusterPki> {
  const { directory } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const now = clock.now();
  const ca = await pair(directory, 'ca', now, () => newAuthority(now));
  const authority = { certificatePem: ca.certificatePem, privateKey: createPrivateKey(ca.keyPem) };
  const sign: ClusterPki['sign'] = ({ days, ...request }) =>
    issueCertificate(authority, {
      ...request,
      notBeforeMs: clock.now() - 300_000,
      notAfterMs: clock.now() + (days ?? LEAF_DAYS) * DAY_MS,
    });
  const issue = (
    subject: Subject,
    usages: readonly ExtendedUsage[],
    names: AlternativeNames = {},
    type: 'ec' | 'rsa' = 'ec',
  ): Credential => {
    const keys = newKeyPair(type);
    return {
      certificatePem: sign({ subject, publicKey: keys.publicKey, usages, ...names }),
      keyPem: privateKeyPem(keys.privateKey),
    };
  };
  const covers = (certificate: X509Certificate): boolean =>
    options.dnsNames.every((n) => certificate.checkHost(n) !== undefined) &&
    options.ipAddresses.every((ip) => certificate.checkIP(ip) !== undefined);
  const server = await pair(
    directory,
    'apiserver',
    now,
    // As kubeadm does it: also the smallest clients in pods (busybox) know RSA.
    () => issue({ commonName: 'kube-apiserver' }, ['serverAuth'], options, 'rsa'),
    covers,
  );
  const kubeletClient = await pair(directory, 'apiserver-kubelet-client', now, () =>
    issue({ commonName: 'kube-apiserver-kubelet-client', organizations: ['system:masters'] }, ['clientAuth']),
  );
  const tokenKey = createPrivateKey(
    await fileOr(join(directory, 'sa.key'), 0o600, () => privateKeyPem(newKeyPair().privateKey)),
  );
  return {
    caPem: ca.certificatePem,
    server,
    kubeletClient,
    tokenKey,
    tokenPublicKey: createPublicKey(tokenKey),
    issueClient: (subject) => issue(subject, ['clientAuth']),
    issueServing: (subject, names) => issue(subject, ['serverAuth'], names),
    sign,
  };
}

function newAuthority(now: number): Credential {
  const keys = newKeyPair();
  const validity = { notBeforeMs: now - 300_000, notAfterMs: now + CA_DAYS * DAY_MS };
  return {
    certificatePem: selfSignedAuthority({ commonName: 'kubernetes' }, keys, validity),
    keyPem: privateKeyPem(keys.privateKey),
  };
}

async function fileOr(path: string, mode: number, make: () => string): Promise<string> {
  const found = await readOptional(path);
  if (found !== undefined && found !== '') return found;
  const made = make();
  await writeFileAtomic(path, made, mode);
  return made;
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}

/** `<name>.crt` and `<name>.key`; made anew when missing, half written, about to expire or not fit for use. */
async function pair(
  directory: string,
  name: string,
  now: number,
  make: () => Credential,
  fits: (certificate: X509Certificate) => boolean = () => true,
): Promise<Credential> {
  const [certificatePem, keyPem] = await Promise.all([
    readOptional(join(directory, `${name}.crt`)),
    readOptional(join(directory, `${name}.key`)),
  ]);
  if (certificatePem !== undefined && keyPem !== undefined && usable(certificatePem, keyPem, now, fits))
    return { certificatePem, keyPem };
  const made = make();
  await writeFileAtomic(join(directory, `${name}.key`), made.keyPem, 0o600);
  await writeFileAtomic(join(directory, `${name}.crt`), made.certificatePem, 0o644);
  return made;
}

function usable(
  certificatePem: string,
  keyPem: string,
  now: number,
  fits: (certificate: X509Certificate) => boolean,
): boolean {
  try {
    const certificate = new X509Certificate(certificatePem);
    const expires = certificate.validToDate.getTime();
    return keyMatches(certificatePem, createPrivateKey(keyPem)) && expires - now > 30 * DAY_MS && fits(certificate);
  } catch {
    // Half written or damaged: it is made again.
    return false;
  }
}
