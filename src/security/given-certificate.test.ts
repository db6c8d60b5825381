// Kubeconfigs with an embedded certificate, stores with and without one: which certificate is in use after the start, what is
// stored, and the error of a start that has neither.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { silentLogger as log } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { selfSignedCertificate } from '../lib/x509/certificate.ts';
import { newKeyPair, privateKeyPem } from '../lib/x509/keys.ts';
import { CertificateStore } from './certificate-store.ts';
import { openClientIdentity, type ClientIdentity } from './client-identity.ts';
import { storeEmbeddedCertificate } from './given-certificate.ts';

const { signal } = new AbortController();
const NOW = Date.UTC(2026, 5, 1);
const DAY = 86_400_000;
const root = mkdtempSync(join(tmpdir(), 'given-'));
after(() => rmSync(root, { recursive: true }));

type Pair = { readonly cert: string; readonly key: string };

function pairUntil(notAfterMs: number, commonName = 'system:node:n1'): Pair {
  const keys = newKeyPair('ec');
  const subject = { commonName, organizations: ['system:nodes'] };
  const request = { subject, notBeforeMs: NOW - 400 * DAY, notAfterMs, usages: ['clientAuth'] as const };
  const names = { dnsNames: [], ipAddresses: [] };
  return { cert: selfSignedCertificate({ ...request, ...names }, keys), key: privateKeyPem(keys.privateKey) };
}

const VALID = pairUntil(NOW + 300 * DAY);
const EXPIRED = pairUntil(NOW - DAY);
const STORED = pairUntil(NOW + 200 * DAY);
const STORED_EXPIRED = pairUntil(NOW - 2 * DAY);
const OTHER_NODE = pairUntil(NOW + 200 * DAY, 'system:node:n2');

const embedded = ({ cert, key }: Pair): string => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  return `client-certificate-data: ${base64(cert)}, client-key-data: ${base64(key)}`;
};
const kubeconfig = (user: string): string => `
apiVersion: v1
kind: Config
current-context: c
clusters: [{ name: c, cluster: { server: 'http://127.0.0.1:1' } }]
users: [{ name: u, user: { ${user} } }]
contexts: [{ name: c, context: { cluster: c, user: u } }]
`;

type Start = {
  readonly dir: string;
  readonly store: CertificateStore;
  readonly clock: ManualClock;
  readonly o: Parameters<typeof openClientIdentity>[1];
  readonly open: () => Promise<ClientIdentity>;
};

async function start(user: string, stored: Pair | undefined, rotate = true): Promise<Start> {
  const dir = mkdtempSync(join(root, 'd-'));
  const clock = new ManualClock(NOW);
  const o = {
    kubeconfig: join(dir, 'kubelet.conf'),
    bootstrapKubeconfig: join(dir, 'bootstrap-kubelet.conf'),
    certDir: join(dir, 'pki'),
    nodeName: 'n1',
    rotate,
  };
  writeFileSync(o.kubeconfig, kubeconfig(user));
  const store = new CertificateStore(o.certDir, 'kubelet-client');
  if (stored !== undefined) await store.save(stored.cert, stored.key, NOW - DAY);
  const connect = (): never => assert.fail('no request at the start');
  return { dir, store, clock, o, open: () => openClientIdentity({ clock, log, connect }, o, signal) };
}

describe('a certificate in the kubeconfig, with rotation', () => {
  const table: readonly (readonly [string, Pair, Pair | undefined, Pair])[] = [
    ['is used and stored where the store is empty', VALID, undefined, VALID],
    ['is used and stored where the stored one has expired', VALID, STORED_EXPIRED, VALID],
    ['does not take the place of a valid one of the store', VALID, STORED, STORED],
    ['may have expired where the store has a valid one', EXPIRED, STORED, STORED],
  ];
  for (const [name, given, stored, want] of table)
    it(name, async () => {
      const t = await start(embedded(given), stored);
      await storeEmbeddedCertificate({ clock: t.clock, log }, t.o);
      assert.equal((await t.store.load())?.cert, want.cert, 'before the start goes on');
      const files = readdirSync(t.o.certDir);
      const { credentials, manager } = await t.open();
      assert.equal((await credentials.current(signal)).tls?.cert, want.cert);
      assert.equal(manager?.valid?.cert, want.cert);
      assert.deepEqual(readdirSync(t.o.certDir), files, 'it is stored once');
      assert.equal(readFileSync(t.store.currentPath, 'utf8'), `${want.cert.trimEnd()}\n${want.key.trimEnd()}\n`);
    });

  it('is replaced at once, also after it was stored', async () => {
    const t = await start(embedded(VALID), undefined);
    await storeEmbeddedCertificate({ clock: t.clock, log }, t.o);
    let requests = 0;
    const client = { create: () => Promise.reject(new Error(`request ${++requests}`)) };
    const connect = (): never => client as never;
    const { manager } = await openClientIdentity({ clock: t.clock, log, connect }, t.o, signal);
    const stop = new AbortController();
    const running = manager?.run(stop.signal);
    await t.clock.advance(0);
    stop.abort();
    await running;
    assert.equal(requests, 1);
  });

  it('is stored by the start where that failed before', async () => {
    const t = await start(embedded(VALID), undefined);
    writeFileSync(t.o.certDir, 'in the way');
    await storeEmbeddedCertificate({ clock: t.clock, log }, t.o);
    rmSync(t.o.certDir);
    await t.open();
    assert.equal((await t.store.load())?.cert, VALID.cert);
  });

  it('has expired like the stored one: the later of both is stored, once', async () => {
    const t = await start(embedded(EXPIRED), STORED_EXPIRED);
    const files = readdirSync(t.o.certDir);
    await assert.rejects(t.open());
    await storeEmbeddedCertificate({ clock: t.clock, log }, t.o);
    await assert.rejects(t.open());
    assert.equal(readdirSync(t.o.certDir).length, files.length + 1);
  });

  for (const [name, stored, rotate] of [
    ['nothing is stored', undefined, true],
    ['the stored one has expired', STORED_EXPIRED, true],
    ['the stored one is of another node', OTHER_NODE, true],
    ['rotation is off', STORED, false],
  ] as const)
    it(`has expired and ${name}: the error names path, date and way out`, async () => {
      const t = await start(embedded(EXPIRED), stored, rotate);
      await assert.rejects(t.open(), ({ message }: Error) => {
        assert.ok(message.includes(`${t.o.kubeconfig} cannot be used: its client certificate expired on 2026-05-31T`));
        assert.ok(message.includes(`unable to load bootstrap kubeconfig ${t.o.bootstrapKubeconfig}: ENOENT`));
        assert.match(message, /kubeadm kubeconfig user --org system:nodes --client-name system:node:n1/);
        return true;
      });
    });

  it('gives way to the bootstrap kubeconfig after it has expired', async () => {
    const t = await start(embedded(EXPIRED), undefined);
    writeFileSync(t.o.bootstrapKubeconfig, kubeconfig('token: t'));
    const { access } = await t.open();
    assert.equal(access.auth.certFile, t.store.currentPath);
  });
});

it('a kubeconfig that refers to files stores nothing', async () => {
  const t = await start('token: t', undefined);
  await storeEmbeddedCertificate({ clock: t.clock, log }, t.o);
  await storeEmbeddedCertificate({ clock: t.clock, log }, { ...t.o, kubeconfig: '/no/such/file' });
  assert.deepEqual(readdirSync(t.dir), ['kubelet.conf']);
});
