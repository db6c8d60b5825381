// A new key and the empty signing request that proves that we hold it.
import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { KubeletError } from '../lib/errors.ts';
import { createSigningRequest } from '../lib/x509/csr.ts';
import { readPem } from '../lib/x509/der.ts';
import type { KeyPair } from '../lib/x509/keys.ts';

const generate = promisify(generateKeyPair);

/** Made beside everything else: a large RSA key takes a second. */
function newKeys(keyType: string): Promise<KeyPair> {
  switch (keyType) {
    case 'RSA3072':
      return generate('rsa', { modulusLength: 3072 });
    case 'RSA4096':
      return generate('rsa', { modulusLength: 4096 });
    case 'ECDSAP256':
      return generate('ec', { namedCurve: 'P-256' });
    case 'ECDSAP384':
      return generate('ec', { namedCurve: 'P-384' });
    case 'ECDSAP521':
      return generate('ec', { namedCurve: 'P-521' });
    case 'ED25519':
      return generate('ed25519', {});
    default:
      throw new KubeletError('invalid', `unknown key type "${keyType}"`);
  }
}

/** `stub` is the request in DER. */
export async function stubRequest(keyType: string): Promise<{ readonly keyPem: string; readonly stub: Buffer }> {
  const keys = await newKeys(keyType);
  const stub = readPem(createSigningRequest({ subject: { commonName: '' } }, keys), 'CERTIFICATE REQUEST');
  if (stub === undefined) throw new KubeletError('internal', 'the signing request cannot be read back');
  return { keyPem: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), stub };
}
