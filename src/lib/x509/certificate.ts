// Issuing X.509 certificates: self-signed authorities and leaves signed by one. Reading is Node's X509Certificate.
import { createHash, createPublicKey, randomBytes, X509Certificate, type KeyObject } from 'node:crypto';
import { KubeletError } from '../errors.ts';
import {
  bitString,
  boolean,
  children,
  context,
  contextPrimitive,
  integer,
  namedBits,
  octetString,
  oid,
  pem,
  readBitString,
  readDer,
  readOid,
  readPem,
  sequence,
  smallInteger,
  time,
  type DerNode,
} from './der.ts';
import { algorithmIdentifier, publicKeyDer, signBytes, type KeyPair } from './keys.ts';
import {
  alternativeNamesDer,
  hasAlternativeNames,
  readSubject,
  subjectDer,
  type AlternativeNames,
  type Subject,
} from './names.ts';

export type ExtendedUsage = 'serverAuth' | 'clientAuth';
export type Validity = { readonly notBeforeMs: number; readonly notAfterMs: number };
export type Authority = { readonly certificatePem: string; readonly privateKey: KeyObject };

export type LeafRequest = AlternativeNames &
  Validity & {
    readonly subject: Subject;
    readonly publicKey: KeyObject;
    readonly usages: readonly ExtendedUsage[];
  };

const EXTENDED_USAGES: Record<ExtendedUsage, string> = {
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
};
const DIGITAL_SIGNATURE = 0;
const KEY_ENCIPHERMENT = 2;
const CERTIFICATE_SIGNING = 5;

const EXTENSION = {
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  alternativeNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
} as const;
const EXTENSIONS_TAG = 0xa3;

const extension = (id: string, value: Uint8Array, critical = false): Buffer =>
  sequence(oid(id), ...(critical ? [boolean(true)] : []), octetString(value));

/** A self-signed certificate authority. */
export function selfSignedAuthority(subject: Subject, keys: KeyPair, validity: Validity): string {
  const name = subjectDer(subject);
  const keyId = keyIdOf(keys.publicKey);
  const extensions = [
    extension(EXTENSION.keyUsage, namedBits(DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, CERTIFICATE_SIGNING), true),
    extension(EXTENSION.basicConstraints, sequence(boolean(true)), true),
    extension(EXTENSION.subjectKeyId, octetString(keyId)),
  ];
  return signed({ issuer: name, subject: name, publicKey: keys.publicKey, validity, extensions }, keys.privateKey);
}

/** A certificate for `request.publicKey`, signed by `authority`. */
export function issueCertificate(authority: Authority, request: LeafRequest): string {
  const issuer = new X509Certificate(authority.certificatePem);
  return signed(
    {
      issuer: fieldsOf(issuer).subject.raw,
      subject: subjectDer(request.subject),
      publicKey: request.publicKey,
      validity: request,
      extensions: leafExtensions(request, subjectKeyIdOf(issuer)),
    },
    authority.privateKey,
  );
}

/** A leaf that is its own issuer: what a kubelet serves with when nobody gave it a certificate. */
export function selfSignedCertificate(request: Omit<LeafRequest, 'publicKey'>, keys: KeyPair): string {
  const whole = { ...request, publicKey: keys.publicKey };
  const name = subjectDer(request.subject);
  const extensions = leafExtensions(whole, keyIdOf(keys.publicKey));
  return signed(
    { issuer: name, subject: name, publicKey: keys.publicKey, validity: whole, extensions },
    keys.privateKey,
  );
}

function leafExtensions(request: LeafRequest, issuerKeyId: Uint8Array | undefined): Buffer[] {
  const bits = [DIGITAL_SIGNATURE, ...(request.publicKey.asymmetricKeyType === 'rsa' ? [KEY_ENCIPHERMENT] : [])];
  const usages = request.usages.map((usage) => oid(EXTENDED_USAGES[usage]));
  return [
    extension(EXTENSION.keyUsage, namedBits(...bits), true),
    ...(usages.length > 0 ? [extension(EXTENSION.extendedKeyUsage, sequence(...usages))] : []),
    extension(EXTENSION.basicConstraints, sequence(), true),
    ...(issuerKeyId === undefined
      ? []
      : [extension(EXTENSION.authorityKeyId, sequence(contextPrimitive(0, issuerKeyId)))]),
    ...(hasAlternativeNames(request) ? [extension(EXTENSION.alternativeNames, alternativeNamesDer(request))] : []),
  ];
}

type Body = {
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  readonly publicKey: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly Uint8Array[];
};

function signed(body: Body, key: KeyObject): string {
  const serial = randomBytes(16);
  serial[0] = (serial[0] ?? 0) & 0x7f;
  const algorithm = algorithmIdentifier(key);
  const toSign = sequence(
    context(0, smallInteger(2)),
    integer(serial),
    algorithm,
    body.issuer,
    sequence(time(body.validity.notBeforeMs), time(body.validity.notAfterMs)),
    body.subject,
    publicKeyDer(body.publicKey),
    context(3, sequence(...body.extensions)),
  );
  return pem('CERTIFICATE', sequence(toSign, algorithm, bitString(signBytes(key, toSign))));
}

/** SHA-1 of the key bits, the usual key identifier. */
function keyIdOf(key: KeyObject): Buffer {
  const bits = children(readDer(publicKeyDer(key)))[1];
  if (bits === undefined) throw new KubeletError('invalid', 'a public key without bits');
  return createHash('sha1').update(readBitString(bits)).digest();
}

function fieldsOf(certificate: X509Certificate): { subject: DerNode } {
  const toSign = children(readDer(certificate.raw))[0];
  const subject = toSign === undefined ? undefined : children(toSign)[5];
  if (subject === undefined) throw new KubeletError('invalid', 'a certificate without a subject');
  return { subject };
}

/** As the certificate names it: not every authority takes the SHA-1 of its key. Undefined where it has none. */
function subjectKeyIdOf(certificate: X509Certificate): Buffer | undefined {
  const [toSign] = children(readDer(certificate.raw));
  const list = toSign === undefined ? undefined : children(toSign).find(({ tag }) => tag === EXTENSIONS_TAG);
  const [extensions] = list === undefined ? [] : children(list);
  if (extensions === undefined) return undefined;
  for (const entry of children(extensions)) {
    const parts = children(entry);
    const [id, value] = [parts[0], parts.at(-1)];
    if (id !== undefined && value !== undefined && readOid(id) === EXTENSION.subjectKeyId)
      return readDer(value.content).content;
  }
  return undefined;
}

/** Common name and organizations, unescaped (X509Certificate.subject is one line a name with `=` in it confuses). */
export const subjectOf = (certificate: X509Certificate): Required<Subject> =>
  readSubject(fieldsOf(certificate).subject);

/** The certificates of a PEM bundle, in order. */
export function readCertificates(text: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

/** Whether `privateKey` belongs to the first certificate in `certificatePem`. */
export function keyMatches(certificatePem: string, privateKey: KeyObject): boolean {
  const bytes = readPem(certificatePem, 'CERTIFICATE');
  if (bytes === undefined) return false;
  return publicKeyDer(new X509Certificate(bytes).publicKey).equals(publicKeyDer(createPublicKey(privateKey)));
}
