// Client certificates with chosen times, signed by the CA in a cluster's PKI folder.
import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { issueCertificate, type Validity } from '../../src/lib/x509/certificate.ts';
import { newKeyPair, privateKeyPem } from '../../src/lib/x509/keys.ts';
import type { Subject } from '../../src/lib/x509/names.ts';

/** Certificate and key in one PEM text, as the kubelet keeps them. */
export function issueClientPem(pkiDir: string, subject: Subject, validity: Validity): string {
  const authority = {
    certificatePem: readFileSync(join(pkiDir, 'ca.crt'), 'utf8'),
    privateKey: createPrivateKey(readFileSync(join(pkiDir, 'ca.key'), 'utf8')),
  };
  const { publicKey, privateKey } = newKeyPair();
  const certificate = issueCertificate(authority, { subject, publicKey, usages: ['clientAuth'], ...validity });
  return certificate + privateKeyPem(privateKey);
}
