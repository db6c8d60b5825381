// Certificates and requests of ours, as openssl reads and verifies them; authorities of openssl, with identifiers of any kind.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { issueCertificate, selfSignedAuthority, type Authority } from '../../src/lib/x509/certificate.ts';
import { createSigningRequest } from '../../src/lib/x509/csr.ts';
import { newKeyPair } from '../../src/lib/x509/keys.ts';
import { cases, Dice, SEED } from './random.ts';

const noOpenssl = spawnSync('openssl', ['version']).status !== 0 && 'missing: openssl';
const DAY_MS = 86_400_000;
const root = mkdtempSync(join(tmpdir(), 'kts-openssl-'));
after(() => rmSync(root, { recursive: true, force: true }));

const at = (name: string): string => join(root, name);
const openssl = (...args: readonly string[]): string =>
  execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' });
const validity = () => ({ notBeforeMs: Date.now() - DAY_MS, notAfterMs: Date.now() + DAY_MS });

/** An authority that openssl makes; `keyId` is how its key is named. */
function authorityOfOpenssl(keyId: string): Authority {
  const extensions = ['basicConstraints=critical,CA:true', 'keyUsage=critical,keyCertSign'];
  if (keyId !== 'none') extensions.push(`subjectKeyIdentifier=${keyId}`);
  writeFileSync(at('ca.cnf'), `[req]\ndistinguished_name=name\n[name]\n[authority]\n${extensions.join('\n')}\n`);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', at('ca.key')];
  const how = ['-config', at('ca.cnf'), '-extensions', 'authority', '-subj', '/O=ours/CN=any', '-days', '1'];
  openssl('req', '-x509', ...how, ...key, '-out', at('ca.pem'));
  return {
    certificatePem: readFileSync(at('ca.pem'), 'utf8'),
    privateKey: createPrivateKey(readFileSync(at('ca.key'), 'utf8')),
  };
}

function ourAuthority(dice: Dice): Authority {
  const keys = newKeyPair(dice.one(['ec', 'rsa']));
  return {
    certificatePem: selfSignedAuthority({ commonName: 'ours' }, keys, validity()),
    privateKey: keys.privateKey,
  };
}

const NAMES = ['n1', 'system:node:n1', 'ü 日本', 'a,b=c', 'with "quotes"', 'x'.repeat(60)];
const HOSTS = ['localhost', 'n1.example.com', '*.example.com', 'xn--bcher-kva.example'];
const ADDRESSES: readonly (readonly [string, string])[] = [
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '0:0:0:0:0:0:0:1'],
  ['fd00::a:0:1', 'FD00:0:0:0:0:A:0:1'],
];

describe(`certificates as openssl sees them, SEED=${SEED}`, { skip: noOpenssl }, () => {
  function verified(dice: Dice, authority: Authority): void {
    const names = { dnsNames: dice.list(3, () => dice.one(HOSTS)), addresses: dice.list(2, () => dice.one(ADDRESSES)) };
    const leaf = issueCertificate(authority, {
      subject: { commonName: dice.one(NAMES), organizations: dice.list(2, () => dice.one(NAMES)) },
      publicKey: newKeyPair(dice.one(['ec', 'rsa'])).publicKey,
      dnsNames: names.dnsNames,
      ipAddresses: names.addresses.map(([address]) => address),
      usages: ['serverAuth', 'clientAuth'],
      ...validity(),
    });
    writeFileSync(at('ca.pem'), authority.certificatePem);
    writeFileSync(at('leaf.pem'), leaf);
    for (const purpose of ['sslserver', 'sslclient'])
      assert.match(openssl('verify', '-purpose', purpose, '-CAfile', at('ca.pem'), at('leaf.pem')), /leaf\.pem: OK/);
    const shown = openssl('x509', '-in', at('leaf.pem'), '-noout', '-ext', 'subjectAltName');
    const wanted = [...names.dnsNames.map((n) => `DNS:${n}`), ...names.addresses.map(([, a]) => `IP Address:${a}`)];
    assert.equal(/^ {4}(.*)$/m.exec(shown)?.[1]?.trim() ?? '', wanted.join(', '));
  }

  for (const keyId of ['hash', '0102030405060708', 'AA'.repeat(32), 'none'])
    it(`a leaf under an authority of openssl whose key id is ${keyId}`, () => {
      const authority = authorityOfOpenssl(keyId);
      const dice = new Dice();
      for (let i = cases(3); i > 0; i--) verified(dice, authority);
    });

  it('a leaf under an authority of ours', () => {
    const dice = new Dice();
    for (let i = cases(5); i > 0; i--) verified(dice, ourAuthority(dice));
  });

  it('a signing request', () => {
    const dice = new Dice();
    for (let i = cases(5); i > 0; i--) {
      const subject = { commonName: dice.one(NAMES), organizations: ['system:nodes'] };
      writeFileSync(
        at('csr.pem'),
        createSigningRequest({ subject, dnsNames: ['n1'] }, newKeyPair(dice.one(['ec', 'rsa']))),
      );
      const { status, stderr } = spawnSync('openssl', ['req', '-in', at('csr.pem'), '-noout', '-verify'], {
        encoding: 'utf8',
      });
      assert.equal(status, 0, stderr);
      assert.match(stderr, /verify OK|self-signature verify OK/i);
    }
  });
});
