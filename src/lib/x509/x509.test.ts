import { X509Certificate, createPrivateKey } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { issueCertificate, keyMatches, selfSignedAuthority, selfSignedCertificate, subjectOf } from './certificate.ts';
import { createSigningRequest, readSigningRequest } from './csr.ts';
import {
  children,
  contextPrimitive,
  namedBits,
  oid,
  pem,
  readDer,
  readNamedBits,
  readOid,
  readPem,
  readText,
  sequence,
  time,
} from './der.ts';
import { alternativeNamesDer, readAlternativeNames } from './names.ts';
import { newKeyPair, privateKeyPem } from './keys.ts';

const DAY = 86_400_000;
const now = Date.parse('2026-11-15T00:00:00Z');
const validity = { notBeforeMs: now - DAY, notAfterMs: now + 3650 * DAY };

function authority(type: 'ec' | 'rsa' = 'ec') {
  const keys = newKeyPair(type);
  return {
    privateKey: keys.privateKey,
    certificatePem: selfSignedAuthority({ commonName: 'test-ca' }, keys, validity),
  };
}

for (const caType of ['ec', 'rsa'] as const)
  for (const leafType of ['ec', 'rsa'] as const)
    test(`a ${leafType} leaf of an ${caType} authority verifies and says what was asked`, () => {
      const ca = authority(caType);
      const keys = newKeyPair(leafType);
      const leaf = new X509Certificate(
        issueCertificate(ca, {
          subject: { commonName: 'system:node:n1', organizations: ['system:nodes', 'b,c=d'] },
          publicKey: keys.publicKey,
          dnsNames: ['n1', 'localhost'],
          ipAddresses: ['127.0.0.1', 'fd00::1', '::ffff:1.2.3.4'],
          usages: ['clientAuth', 'serverAuth'],
          ...validity,
        }),
      );
      const issuer = new X509Certificate(ca.certificatePem);
      assert.ok(issuer.ca);
      assert.ok(!leaf.ca);
      assert.ok(leaf.verify(issuer.publicKey));
      assert.ok(leaf.checkIssued(issuer));
      assert.deepEqual(subjectOf(leaf), {
        commonName: 'system:node:n1',
        organizations: ['b,c=d', 'system:nodes'],
      });
      assert.match(
        leaf.subjectAltName ?? '',
        /DNS:n1, DNS:localhost, IP Address:127\.0\.0\.1, IP Address:FD00:0:0:0:0:0:0:1/,
      );
      assert.ok(leaf.checkIP('127.0.0.1') !== undefined);
      assert.deepEqual(leaf.keyUsage?.toSorted(), ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
      assert.ok(keyMatches(leaf.toString(), keys.privateKey));
      assert.ok(!keyMatches(leaf.toString(), ca.privateKey));
    });

test('private keys read back', () => {
  for (const type of ['ec', 'rsa'] as const) {
    const keys = newKeyPair(type);
    assert.match(privateKeyPem(keys.privateKey), type === 'ec' ? /BEGIN EC PRIVATE KEY/ : /BEGIN RSA PRIVATE KEY/);
    assert.ok(createPrivateKey(privateKeyPem(keys.privateKey)).equals(keys.privateKey));
  }
});

test('a signing request reads back, and a forged one does not', () => {
  const keys = newKeyPair();
  const text = createSigningRequest(
    {
      subject: { commonName: 'system:node:ñ1', organizations: ['system:nodes'] },
      dnsNames: ['n1'],
      ipAddresses: ['10.0.0.1'],
    },
    keys,
  );
  const read = readSigningRequest(text);
  assert.deepEqual(read.subject, { commonName: 'system:node:ñ1', organizations: ['system:nodes'] });
  assert.deepEqual([read.dnsNames, read.ipAddresses, read.emailAddresses, read.uris], [['n1'], ['10.0.0.1'], [], []]);
  assert.ok(read.publicKey.equals(keys.publicKey));
  const bytes = readPem(text, 'CERTIFICATE REQUEST');
  assert.ok(bytes !== undefined);
  const forged = Buffer.from(bytes);
  const at = forged.indexOf('n1', forged.indexOf(Buffer.from([0x82, 2])));
  forged[at + 1] = '2'.charCodeAt(0);
  assert.throws(() => readSigningRequest(pem('CERTIFICATE REQUEST', forged)), /not signed by its own key/);
  assert.throws(() => readSigningRequest('nonsense'), /CERTIFICATE REQUEST/);
  assert.throws(() => readSigningRequest(pem('CERTIFICATE REQUEST', bytes.subarray(0, 40))), /malformed DER/);
});

test('openssl agrees with what is written', { skip: spawnSync('openssl', ['version']).status !== 0 }, () => {
  const csr = createSigningRequest({ subject: { commonName: 'a' }, dnsNames: ['a.example'] }, newKeyPair('rsa'));
  const checked = spawnSync('openssl', ['req', '-verify', '-noout', '-text'], { input: csr, encoding: 'utf8' });
  assert.equal(checked.status, 0, checked.stderr);
  assert.match(checked.stdout, /DNS:a\.example/);
  const keys = newKeyPair();
  const own = selfSignedCertificate(
    { subject: { commonName: 'n1@1' }, dnsNames: ['n1'], usages: ['serverAuth'], ...validity },
    keys,
  );
  const shown = spawnSync('openssl', ['x509', '-noout', '-text'], { input: own, encoding: 'utf8' });
  assert.equal(shown.status, 0, shown.stderr);
  assert.match(shown.stdout, /TLS Web Server Authentication/);
});

test('TLS accepts the chain in both directions', async () => {
  const ca = authority();
  const issue = (commonName: string, usages: ('serverAuth' | 'clientAuth')[]) => {
    const keys = newKeyPair();
    const request = { subject: { commonName }, publicKey: keys.publicKey, ipAddresses: ['127.0.0.1'], usages };
    return {
      cert: issueCertificate(ca, { ...request, notBeforeMs: Date.now() - DAY, notAfterMs: Date.now() + DAY }),
      key: privateKeyPem(keys.privateKey),
    };
  };
  const server = createServer(
    { ...issue('server', ['serverAuth']), ca: ca.certificatePem, requestCert: true, rejectUnauthorized: true },
    (socket) => socket.end(),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const seen = once(server, 'secureConnection') as Promise<[TLSSocket]>;
  const client = connect({
    port: (server.address() as AddressInfo).port,
    host: '127.0.0.1',
    ca: ca.certificatePem,
    ...issue('client', ['clientAuth']),
  });
  await once(client, 'secureConnect');
  const [accepted] = await seen;
  assert.ok(accepted.authorized);
  assert.equal(accepted.getPeerCertificate().subject.CN, 'client');
  client.destroy();
  server.close();
});

test('DER details', () => {
  for (const dotted of ['1.2.840.113549.1.1.11', '2.5.29.17', '1.3.101.112', '2.999.3'])
    assert.equal(readOid(readDer(oid(dotted))), dotted);
  assert.deepEqual(readNamedBits(readDer(namedBits(0, 2, 5))), [0, 2, 5]);
  assert.deepEqual(readNamedBits(readDer(namedBits(8))), [8]);
  assert.throws(() => readDer(Buffer.from([0x30, 0x05, 0x00])), /ends early/);
  assert.throws(() => readDer(Buffer.from([0x05, 0x00, 0x00])), /trailing/);
  assert.throws(() => children(readDer(Buffer.from([0x02, 0x01, 0x00]))), /primitive/);
});

test('a leaf names the key of its authority as the authority does', () => {
  const keys = newKeyPair('ec');
  const usual = selfSignedAuthority({ commonName: 'other-ca' }, keys, validity);
  const der = readPem(usual, 'CERTIFICATE') ?? Buffer.alloc(0);
  // The identifier is not the SHA-1 of the key; the signature of an authority counts for nobody who trusts it.
  const at = der.indexOf(oid('2.5.29.14')) + oid('2.5.29.14').length + 4;
  const keyId = Buffer.alloc(20, 7);
  const changed = Buffer.concat([der.subarray(0, at), keyId, der.subarray(at + 20)]);
  const authorityOf = (bytes: Buffer) => ({ certificatePem: pem('CERTIFICATE', bytes), privateKey: keys.privateKey });
  const request = { subject: { commonName: 'leaf' }, publicKey: keys.publicKey, usages: [], ...validity };
  const issued = (bytes: Buffer): Buffer =>
    readPem(issueCertificate(authorityOf(bytes), request), 'CERTIFICATE') ?? Buffer.alloc(0);
  assert.ok(issued(changed).includes(sequence(contextPrimitive(0, keyId))));
  assert.ok(!issued(der).includes(sequence(contextPrimitive(0, keyId))));
  assert.ok(issued(der).includes(oid('2.5.29.35')));
  // One without an identifier: another extension stands in its place.
  const without = Buffer.from(der);
  without.set(oid('2.5.29.99'), without.indexOf(oid('2.5.29.14')));
  assert.ok(!issued(without).includes(oid('2.5.29.35')));
  assert.ok(new X509Certificate(issued(changed)).checkIssued(new X509Certificate(changed)));
});

test('addresses read as Go prints them', () => {
  const read = (...ipAddresses: readonly string[]) =>
    readAlternativeNames(readDer(alternativeNamesDer({ ipAddresses }))).ipAddresses;
  const addresses = ['1.2.3.4', '::ffff:1.2.3.4', '::1', 'fd00::a:0:1', '::1.2.3.4'];
  assert.deepEqual(read(...addresses), ['1.2.3.4', '1.2.3.4', '::1', 'fd00::a:0:1', '::102:304']);
});

test('what has no form is invalid', () => {
  const rows: readonly (readonly [string, () => unknown])[] = [
    ...[0, 3, 5, 15, 17].map(
      (size) =>
        [
          `an address of ${size} bytes`,
          () => readAlternativeNames(readDer(sequence(contextPrimitive(7, Buffer.alloc(size))))),
        ] as const,
    ),
    ['a BMPString of odd length', () => readText(readDer(Buffer.from('1e03004100', 'hex')))],
    ['a length of two bytes for a short one', () => readDer(Buffer.from('0481017f', 'hex'))],
    ['a length with a zero ahead', () => readDer(Buffer.concat([Buffer.from('04820080', 'hex'), Buffer.alloc(128)]))],
    ['the year 10000', () => time(Date.UTC(10_000, 0, 1))],
    ['the year -1', () => time(Date.parse('-000001-12-31T23:59:59Z'))],
    ['no time', () => time(NaN)],
  ];
  for (const [what, make] of rows) assert.throws(make, { kind: 'invalid' }, what);
  assert.equal(readDer(Buffer.concat([Buffer.from('048180', 'hex'), Buffer.alloc(128)])).content.length, 128);
  assert.equal(readDer(time(Date.parse('9999-12-31T23:59:59.999Z'))).content.toString(), '99991231235959Z');
});
