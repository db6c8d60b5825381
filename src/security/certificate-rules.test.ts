import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import { issueCertificate, selfSignedAuthority, subjectOf } from '../lib/x509/certificate.ts';
import { newKeyPair } from '../lib/x509/keys.ts';
import { covers, rotationDeadline } from './certificate-manager.ts';
import { newSelfSigned } from './self-signed-serving.ts';
import { decisionOf } from './signing-request.ts';

const START = Date.UTC(2026, 5, 1);
const HOUR = 3_600_000;

describe('certificate rules', () => {
  it('rotates between 70 and 90 %', () => {
    const kept = { notBeforeMs: 1000, notAfterMs: 2000 };
    assert.equal(rotationDeadline(kept, 0), 1700);
    assert.ok(Math.abs(rotationDeadline(kept, 0.9999) - 1900) < 1);
  });

  it('names the decision', () => {
    const request = { metadata: { name: 'r' }, spec: { request: '', signerName: '' } };
    assert.equal(decisionOf(request), undefined);
    const failed = decisionOf({ ...request, status: { conditions: [{ type: 'Failed', reason: 'R', message: 'M' }] } });
    assert.equal(String(failed), 'KubeletError: certificate signing request failed, reason: R, message: M');
  });

  it('a certificate must say all that the template wants', async () => {
    const { cert } = await newSelfSigned('host1', START);
    const leaf = new X509Certificate(cert);
    const commonName = subjectOf(leaf).commonName;
    const template = { commonName, organizations: [], dnsNames: ['host1'], ipAddresses: [] };
    assert.equal(covers({ leaf }, template), true);
    assert.equal(covers({ leaf }, { ...template, dnsNames: ['host2'] }), false);
    assert.equal(covers({ leaf }, { ...template, ipAddresses: ['10.0.0.1'] }), false);
    assert.equal(covers({ leaf }, { ...template, commonName: 'x' }), false);
  });

  it('a certificate of more organizations than were asked for need not be replaced', () => {
    const keys = newKeyPair();
    const validity = { notBeforeMs: START, notAfterMs: START + HOUR };
    const certificatePem = selfSignedAuthority({ commonName: 'ca' }, keys, validity);
    const leaf = new X509Certificate(
      issueCertificate(
        { certificatePem, privateKey: keys.privateKey },
        {
          ...validity,
          subject: { commonName: 'system:node:n', organizations: ['site', 'system:nodes'] },
          publicKey: keys.publicKey,
          usages: ['clientAuth'],
        },
      ),
    );
    const template = { commonName: 'system:node:n', organizations: ['system:nodes'], dnsNames: [], ipAddresses: [] };
    assert.equal(covers({ leaf }, template), true);
    assert.equal(covers({ leaf }, { ...template, organizations: ['other'] }), false);
  });
});
