// Key pairs and the signature algorithm that goes with a key.
import { generateKeyPair, generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { KubeletError } from '../errors.ts';
import { nullValue, oid, readOid, sequence, type DerNode, children } from './der.ts';

export type KeyPair = { readonly privateKey: KeyObject; readonly publicKey: KeyObject };

/** `ec` is P-256, what a kubelet uses for its own certificates; `rsa` has 2048 bits. */
export const newKeyPair = (type: 'ec' | 'rsa' = 'ec'): KeyPair =>
  type === 'ec' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('rsa', RSA);

const RSA = { modulusLength: 2048 };
/** On a thread of its own: primes take a tenth of a second to find. */
export const newRsaKeyPair = (): Promise<KeyPair> => promisify(generateKeyPair)('rsa', RSA);

/** `EC PRIVATE KEY` or `RSA PRIVATE KEY`, as Go's client-go writes them; PKCS#8 for what has no older form. */
export function privateKeyPem(key: KeyObject): string {
  const type = key.asymmetricKeyType === 'ec' ? 'sec1' : key.asymmetricKeyType === 'rsa' ? 'pkcs1' : 'pkcs8';
  return key.export({ type, format: 'pem' }).toString();
}

export const publicKeyDer = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' });

type Algorithm = { readonly oid: string; readonly digest: string | null; readonly parameters: boolean };

const ECDSA_SHA256 = { oid: '1.2.840.10045.4.3.2', digest: 'sha256', parameters: false };
const ALGORITHMS: readonly Algorithm[] = [
  ECDSA_SHA256,
  { oid: '1.2.840.10045.4.3.3', digest: 'sha384', parameters: false },
  { oid: '1.2.840.10045.4.3.4', digest: 'sha512', parameters: false },
  { oid: '1.2.840.113549.1.1.11', digest: 'sha256', parameters: true },
  { oid: '1.2.840.113549.1.1.12', digest: 'sha384', parameters: true },
  { oid: '1.2.840.113549.1.1.13', digest: 'sha512', parameters: true },
  { oid: '1.3.101.112', digest: null, parameters: false },
];
const byDigest = (digest: string | null, parameters: boolean): Algorithm =>
  ALGORITHMS.find((a) => a.digest === digest && a.parameters === parameters) ?? ECDSA_SHA256;

function algorithmFor(key: KeyObject): Algorithm {
  switch (key.asymmetricKeyType) {
    case 'rsa':
      return byDigest('sha256', true);
    case 'ed25519':
      return byDigest(null, false);
    case 'ec': {
      const curve = key.asymmetricKeyDetails?.namedCurve;
      return byDigest(curve === 'secp384r1' ? 'sha384' : curve === 'secp521r1' ? 'sha512' : 'sha256', false);
    }
    default:
      throw new KubeletError('invalid', `keys of type ${key.asymmetricKeyType} sign no certificates`);
  }
}

/** The AlgorithmIdentifier that goes into what `key` signs. */
export function algorithmIdentifier(key: KeyObject): Buffer {
  const algorithm = algorithmFor(key);
  return sequence(oid(algorithm.oid), ...(algorithm.parameters ? [nullValue()] : []));
}

export const signBytes = (key: KeyObject, bytes: Uint8Array): Buffer => sign(algorithmFor(key).digest, bytes, key);

export function verifyBytes(key: KeyObject, identifier: DerNode, bytes: Uint8Array, signature: Uint8Array): boolean {
  const name = children(identifier)[0];
  const algorithm = name === undefined ? undefined : ALGORITHMS.find((a) => a.oid === readOid(name));
  return algorithm !== undefined && verify(algorithm.digest, bytes, key, signature);
}
