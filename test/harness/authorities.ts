// Certificate authorities for tests, each a key and a certificate of its own.
import { selfSignedAuthority, type Authority } from '../../src/lib/x509/certificate.ts';
import { newKeyPair } from '../../src/lib/x509/keys.ts';

const DAY_MS = 86_400_000;

export function newAuthority(commonName: string): Authority {
  const keys = newKeyPair();
  const validity = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + DAY_MS };
  return { certificatePem: selfSignedAuthority({ commonName }, keys, validity), privateKey: keys.privateKey };
}
