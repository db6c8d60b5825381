// The self-signed serving certificate: made once, made anew from every half, damaged or expired state of its files, never over an
// administrator's, and used from memory while the disk takes no files.
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { issueCertificate, selfSignedAuthority } from '../lib/x509/certificate.ts';
import { newKeyPair, privateKeyPem } from '../lib/x509/keys.ts';
import { parseKept } from './certificate-store.ts';
import { newSelfSigned, pairState, selfSignedServing, SelfSignedWriter } from './self-signed-serving.ts';
import type { ServingPair } from './serving-certificate.ts';
import { openServing } from './serving-source.ts';
import { steps } from './signer.fixture.ts';

const NOW = Date.UTC(2026, 5, 1);
const DAY = 86_400_000;
const root = mkdtempSync(join(tmpdir(), 'self-signed-'));
after(() => rmSync(root, { recursive: true }));
const fresh = (): string => mkdtempSync(join(root, 'd-'));

const logged: string[] = [];
const note = (message: string, fields: object = {}): void => void logged.push(`${message} ${JSON.stringify(fields)}`);
const log = { ...silentLogger, warn: note, error: note };
const deps = { clock: new ManualClock(NOW), log };

let own: ServingPair;
let expired: ServingPair;
let other: ServingPair;
let admins: ServingPair;
before(async () => {
  [own, other, expired] = await Promise.all([
    newSelfSigned('n1', NOW),
    newSelfSigned('n1', NOW),
    newSelfSigned('n1', NOW - 400 * DAY),
  ]);
  const [ca, keys] = [newKeyPair('ec'), newKeyPair('ec')];
  const validity = { notBeforeMs: NOW - 400 * DAY, notAfterMs: NOW - DAY };
  const certificatePem = selfSignedAuthority({ commonName: 'our company' }, ca, validity);
  const request = { ...validity, subject: { commonName: 'n1' }, publicKey: keys.publicKey, usages: [] as const };
  const names = { dnsNames: ['n1'], ipAddresses: [] };
  const cert = issueCertificate({ certificatePem, privateKey: ca.privateKey }, { ...request, ...names });
  admins = { cert, key: privateKeyPem(keys.privateKey) };
});

const pairIn = (dir: string): ServingPair => ({
  cert: readFileSync(join(dir, 'kubelet.crt'), 'utf8'),
  key: readFileSync(join(dir, 'kubelet.key'), 'utf8'),
});
function put(dir: string, cert: string | undefined, key: string | undefined): void {
  if (cert !== undefined) writeFileSync(join(dir, 'kubelet.crt'), cert);
  if (key !== undefined) writeFileSync(join(dir, 'kubelet.key'), key);
}
const halfOf = (text: string): string => text.slice(0, text.length / 2);

describe('the self-signed serving certificate', () => {
  it('is made once, with the modes upstream has, and serves', async () => {
    const dir = fresh();
    await selfSignedServing(deps, dir, 'localhost');
    const pair = pairIn(dir);
    assert.deepEqual(await selfSignedServing(deps, dir, 'localhost'), {
      files: { cert: join(dir, 'kubelet.crt'), key: join(dir, 'kubelet.key') },
    });
    assert.deepEqual(pairIn(dir), pair);
    assert.equal(statSync(join(dir, 'kubelet.crt')).mode & 0o777, 0o644);
    assert.equal(statSync(join(dir, 'kubelet.key')).mode & 0o777, 0o600);
    assert.match(pair.key, /BEGIN RSA PRIVATE KEY/);
    const now = await newSelfSigned('localhost', Date.now());
    const server = https.createServer(now, (_request, response) => response.end('hello')).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const body = await new Promise((resolve, reject) => {
      const ca = now.cert.slice(now.cert.lastIndexOf('-----BEGIN'));
      https
        .get({ port, host: '127.0.0.1', servername: 'localhost', ca, agent: false }, (response) =>
          response.on('data', (data: Buffer) => resolve(String(data))),
        )
        .on('error', reject);
    });
    assert.equal(body, 'hello');
    server.close();
  });

  it('is judged by what its files hold', () => {
    const rows: readonly (readonly [string, string | undefined, string | undefined, string])[] = [
      ['nothing', undefined, undefined, 'missing'],
      ['a pair', own.cert, own.key, 'usable'],
      ['no key', own.cert, undefined, 'unusable: certificate and key must be supplied as a pair'],
      ['no certificate', undefined, own.key, 'unusable: certificate and key must be supplied as a pair'],
      ['an empty certificate', '', own.key, 'unusable: no certificate and key in PEM format found'],
      ['an empty key', own.cert, '', 'unusable: no certificate and key in PEM format found'],
      ['a pair that has expired', expired.cert, expired.key, 'unusable: expired on '],
      ['keys of another certificate', own.cert, other.key, 'unusable: private key does not match the certificate'],
      ['half a certificate', halfOf(own.cert.split(/(?<=END CERTIFICATE-----\n)/)[0] ?? ''), own.key, 'unusable: '],
      ['half a key', own.cert, halfOf(own.key), 'unusable: '],
      ['garbage', '\0\u{FFFF}\u0001', '\0\0', 'unusable: '],
      ['a damaged certificate', own.cert.replace(/[A-Z]{2}/, '!!'), own.key, 'unusable: '],
      ["an administrator's that has expired", admins.cert, admins.key, 'usable'],
      ["an administrator's without its key", admins.cert, undefined, 'refused: certificate and key must be supplied'],
      ["an administrator's with another key", admins.cert, own.key, 'refused: private key does not match'],
    ];
    for (const [name, cert, key, want] of rows) {
      const state = pairState(cert, key, NOW);
      const text = 'reason' in state ? `${state.is}: ${state.reason}` : state.is;
      assert.ok(text.startsWith(want), `${name}: ${text}`);
      assert.ok(!text.includes(own.key.slice(40, 60)), `${name} quotes the key`);
    }
  });

  it('is made anew with a warning, and what was there is kept', async () => {
    for (const [cert, key] of [
      [own.cert, undefined],
      ['', own.key],
      [expired.cert, expired.key],
      [own.cert, halfOf(own.key)],
    ]) {
      const dir = fresh();
      put(dir, cert, key);
      logged.length = 0;
      assert.equal((await selfSignedServing(deps, dir, 'n1')).unwritten, undefined);
      const made = pairIn(dir);
      assert.ok(parseKept(made.cert, made.key).notAfterMs > NOW);
      assert.equal(logged.length, 1);
      assert.match(logged[0] ?? '', /made anew.*kubelet\.crt.*"reason":"[^"]+"/);
      const asides = readdirSync(dir).filter((name) => name.endsWith('.unusable'));
      assert.equal(asides.length, [cert, key].filter((text) => text !== undefined).length);
    }
    const dir = fresh();
    mkdirSync(join(dir, 'kubelet.crt'));
    await selfSignedServing(deps, dir, 'n1');
    assert.match(pairIn(dir).cert, /BEGIN CERTIFICATE/);
  });

  it("does not take the place of an administrator's, and the error names both files", async () => {
    const dir = fresh();
    put(dir, admins.cert, own.key);
    await assert.rejects(
      selfSignedServing(deps, dir, 'n1'),
      /kubelet\.crt with the key .*kubelet\.key cannot be used: /,
    );
    assert.deepEqual(pairIn(dir), { cert: admins.cert, key: own.key });
  });

  it('leaves no half behind when the disk is full in between, and is used from memory until it can be written', async () => {
    const dir = fresh();
    let room = 1;
    const write: typeof writeFileAtomic = (path, data, mode) =>
      room-- > 0
        ? writeFileAtomic(path, data, mode)
        : Promise.reject(new Error('ENOSPC: no space left on device, write'));
    const clock = new ManualClock(NOW);
    const { files, unwritten } = await selfSignedServing({ clock, log, write }, dir, 'n1');
    assert.ok(unwritten !== undefined);
    assert.ok(parseKept(unwritten.cert, unwritten.key).notAfterMs > NOW);
    assert.deepEqual(readdirSync(dir), []);
    const stop = new AbortController();
    const attempts: string[] = [];
    const counted: typeof writeFileAtomic = (path, data, mode) => {
      attempts.push(path);
      return write(path, data, mode);
    };
    const running = new SelfSignedWriter({ clock, log, write: counted }, files, unwritten).run(stop.signal);
    await steps(clock, 60_000, () => {
      if (attempts.length === 2) room = 2;
      return existsSync(files.cert);
    });
    assert.deepEqual(pairIn(dir), unwritten);
    stop.abort();
    await running;
  });

  it('in memory gives way to files that an administrator puts there', async () => {
    const dir = fresh();
    put(dir, admins.cert, undefined);
    const clock = new ManualClock(NOW);
    const stop = new AbortController();
    const files = { cert: join(dir, 'kubelet.crt'), key: join(dir, 'kubelet.key') };
    const running = new SelfSignedWriter({ clock, log }, files, own).run(stop.signal);
    await clock.advance(60_000);
    stop.abort();
    await running;
    assert.deepEqual(readdirSync(dir), ['kubelet.crt']);
  });

  it('is shown from memory where its directory cannot be made', async () => {
    const file = join(fresh(), 'file');
    writeFileSync(file, '');
    const options = { certFile: '', keyFile: '', bootstrap: false, allowDnsOnly: false, reload: true, nodeName: 'n1' };
    const source = await openServing(
      { ...deps, addresses: () => [], onChange: () => undefined },
      { ...options, certDir: join(file, 'pki') },
    );
    assert.match(source.current()?.cert ?? '', /BEGIN CERTIFICATE/);
    assert.deepEqual(
      source.parts.map((part) => part.name),
      ['self-signed-serving'],
    );
  });
});
