// PKCS#10 certificate signing requests: building, reading, checking that the sender holds the key.
import { createPublicKey, type KeyObject } from 'node:crypto';
import { KubeletError } from '../errors.ts';
import {
  bitString,
  children,
  context,
  octetString,
  oid,
  pem,
  readBitString,
  readDer,
  readOid,
  readPem,
  sequence,
  setOf,
  smallInteger,
  type DerNode,
} from './der.ts';
import { algorithmIdentifier, publicKeyDer, signBytes, verifyBytes, type KeyPair } from './keys.ts';
import {
  alternativeNamesDer,
  hasAlternativeNames,
  readAlternativeNames,
  readSubject,
  subjectDer,
  type AlternativeNames,
  type ReadAlternativeNames,
  type Subject,
} from './names.ts';

const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const ALTERNATIVE_NAMES = '2.5.29.17';

export type SigningRequest = ReadAlternativeNames & {
  readonly subject: Required<Subject>;
  readonly publicKey: KeyObject;
};

/** A `CERTIFICATE REQUEST` block. */
export function createSigningRequest(request: { subject: Subject } & AlternativeNames, keys: KeyPair): string {
  const extensions = hasAlternativeNames(request)
    ? [sequence(oid(ALTERNATIVE_NAMES), octetString(alternativeNamesDer(request)))]
    : [];
  const attributes = extensions.length > 0 ? [sequence(oid(EXTENSION_REQUEST), setOf(sequence(...extensions)))] : [];
  const info = sequence(
    smallInteger(0),
    subjectDer(request.subject),
    publicKeyDer(keys.publicKey),
    context(0, ...attributes),
  );
  const signature = bitString(signBytes(keys.privateKey, info));
  return pem('CERTIFICATE REQUEST', sequence(info, algorithmIdentifier(keys.privateKey), signature));
}

/** Reads a request and checks its signature; an `invalid` KubeletError says what is wrong with it. */
export function readSigningRequest(text: string): SigningRequest {
  const bytes = readPem(text, 'CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST');
  if (bytes === undefined) throw new KubeletError('invalid', 'PEM block type must be CERTIFICATE REQUEST');
  const [info, algorithm, signature] = children(readDer(bytes));
  const [, subject, key, attributes] = info === undefined ? [] : children(info);
  if (info === undefined || algorithm === undefined || signature === undefined || !subject || !key)
    throw new KubeletError('invalid', 'the certificate request is incomplete');
  const publicKey = publicKeyFrom(key);
  if (!verifyBytes(publicKey, algorithm, info.raw, readBitString(signature)))
    throw new KubeletError('invalid', 'the certificate request is not signed by its own key');
  const names = attributes === undefined ? undefined : requestedNames(attributes);
  const none = { dnsNames: [], ipAddresses: [], emailAddresses: [], uris: [] };
  return { subject: readSubject(subject), publicKey, ...(names ?? none) };
}

function publicKeyFrom(node: DerNode): KeyObject {
  try {
    return createPublicKey({ key: node.raw, format: 'der', type: 'spki' });
  } catch (err) {
    throw new KubeletError('invalid', 'the certificate request holds no usable public key', { cause: err });
  }
}

function requestedNames(attributes: DerNode): ReadAlternativeNames | undefined {
  for (const attribute of children(attributes)) {
    const [type, values] = children(attribute);
    if (type === undefined || values === undefined || readOid(type) !== EXTENSION_REQUEST) continue;
    for (const extension of children(values).flatMap(children)) {
      const [id, ...rest] = children(extension);
      const value = rest.at(-1);
      if (id !== undefined && value !== undefined && readOid(id) === ALTERNATIVE_NAMES)
        return readAlternativeNames(readDer(value.content));
    }
  }
  return undefined;
}
