import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { describe, it } from 'node:test';
import type { KubeList } from '../core/meta.ts';
import type { Pod } from '../core/pod.ts';
import { apiTime } from '../core/time.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { readSigningRequest } from '../lib/x509/csr.ts';
import { pem } from '../lib/x509/der.ts';
import { stubRequest } from './certificate-stub.ts';
import { PodCertificates, type CertificateAsk, type PodCredentials } from './pod-certificates.ts';
import type { PodCertificateRequest } from './resources.ts';
import type { WatchEvent } from './watch.ts';

const signal = new AbortController().signal;
const pod: Pod = {
  metadata: { name: 'p', namespace: 'ns', uid: 'U' },
  spec: { containers: [], serviceAccountName: 'sa' },
};
const ask: CertificateAsk = {
  pod,
  volume: 'v',
  index: 1,
  source: {
    signerName: 'example.com/mesh',
    keyType: 'ED25519',
    maxExpirationSeconds: 7200,
    keyPath: 'k',
    userAnnotations: { 'example.com/a': 'b' },
  },
};
const bookmark = {
  type: 'BOOKMARK',
  object: { metadata: { name: '', resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } } },
};
const HOUR = 3_600_000;

/** An API server with a signer behind it that does what it is told. */
class World {
  readonly clock: ManualClock;
  readonly bodies: Record<string, Record<string, unknown>>[] = [];
  readonly reported: string[] = [];
  readonly changed: string[] = [];
  readonly certificates: PodCertificates;
  isDown = false;
  readonly #requests: PodCertificateRequest[] = [];
  readonly #queue: WatchEvent<unknown>[] = [bookmark as WatchEvent<unknown>];
  #wake: () => void = () => undefined;
  #version = 10;

  constructor(random = 0) {
    this.clock = new ManualClock(Date.UTC(2026, 0, 1), () => random);
    this.certificates = new PodCertificates(
      {
        client: {
          create: <T>(_r: unknown, _w: unknown, body: object) => this.#create(body) as Promise<T>,
          list: <T>() => Promise.reject<KubeList<T>>(new KubeletError('internal', 'not used')),
          watch: <T>() => this.#watch() as AsyncGenerator<WatchEvent<T>, void, undefined>,
        },
        accounts: {
          get: (namespace, name) => Promise.resolve({ metadata: { name, namespace, uid: `uid of ${name}` } }),
        },
        nodeUid: () => 'node uid',
        events: {
          pod: (_pod, type, reason, text) => void this.reported.push(`${type} ${reason} ${text}`),
          node: () => undefined,
        },
        clock: this.clock,
        log: silentLogger,
        onChange: (uid) => void this.changed.push(uid),
      },
      { nodeName: 'n1' },
    );
    void this.certificates.run(signal);
  }

  /** Until the request is made, or there was no need for one. */
  async begin(): Promise<{ got: Promise<PodCredentials> }> {
    const made = this.bodies.length;
    let isOver = false;
    const got = this.certificates.credentials(ask, signal);
    const over = (): void => void (isOver = true);
    got.then(over, over);
    while (!isOver && this.bodies.length === made) await new Promise((resolve) => setTimeout(resolve, 1));
    await this.clock.advance(1);
    return { got };
  }

  async get(): Promise<PodCredentials> {
    return (await this.begin()).got;
  }

  /** The answer to the newest request. */
  async answer(type: string, more: Partial<NonNullable<PodCertificateRequest['status']>> = {}): Promise<void> {
    const request = this.#requests.at(-1);
    assert.ok(request !== undefined);
    const { metadata } = request;
    const status = { conditions: [{ type, reason: 'Why', message: 'because' }], ...more };
    await this.#send('MODIFIED', {
      ...request,
      metadata: { ...metadata, resourceVersion: `${++this.#version}` },
      status,
    });
  }

  issue(chain: string, refreshInMs: number, lifeMs: number): Promise<void> {
    const now = this.clock.now();
    return this.answer('Issued', {
      certificateChain: chain,
      beginRefreshAt: apiTime(now + refreshInMs),
      notAfter: apiTime(now + lifeMs),
    });
  }

  async remove(): Promise<void> {
    await this.#send('DELETED', this.#requests.at(-1));
  }

  async #create(body: object): Promise<unknown> {
    if (this.isDown) throw new KubeletError('unavailable', 'connection refused');
    this.bodies.push(body as (typeof this.bodies)[number]);
    const name = `req-${this.bodies.length}`;
    const metadata = { name, namespace: 'ns', uid: name, resourceVersion: `${++this.#version}` };
    const request = { ...(body as PodCertificateRequest), metadata };
    this.#requests.push(request);
    await this.#send('ADDED', request);
    return request;
  }

  async #send(type: string, object: unknown): Promise<void> {
    this.#queue.push({ type, object } as WatchEvent<unknown>);
    this.#wake();
    await this.clock.advance(0);
  }

  async *#watch(): AsyncGenerator<WatchEvent<unknown>, void, undefined> {
    for (;;) {
      while (this.#queue.length > 0) yield this.#queue.shift() as WatchEvent<unknown>;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

const CHAIN = pem('CERTIFICATE', Buffer.from('leaf')) + pem('CERTIFICATE', Buffer.from('intermediate'));

describe('a stub request', () => {
  for (const [keyType, type, size] of [
    ['RSA3072', 'rsa', 3072],
    ['RSA4096', 'rsa', 4096],
    ['ECDSAP256', 'ec', 'prime256v1'],
    ['ECDSAP384', 'ec', 'secp384r1'],
    ['ECDSAP521', 'ec', 'secp521r1'],
    ['ED25519', 'ed25519', undefined],
  ] as const)
    it(`proves that we hold a key of type ${keyType}`, async () => {
      const { keyPem, stub } = await stubRequest(keyType);
      assert.match(keyPem, /^-----BEGIN PRIVATE KEY-----\n/);
      const key = createPrivateKey(keyPem);
      const { publicKey, subject } = readSigningRequest(pem('CERTIFICATE REQUEST', stub));
      assert.ok(createPublicKey(key).equals(publicKey));
      assert.deepEqual(subject, { commonName: '', organizations: [] });
      const { modulusLength, namedCurve } = key.asymmetricKeyDetails ?? {};
      assert.deepEqual([key.asymmetricKeyType, modulusLength ?? namedCurve], [type, size]);
    });

  it('is of a type that is known', async () => {
    await assert.rejects(stubRequest('RSA1024'), { message: 'unknown key type "RSA1024"' });
  });
});

describe('PodCertificates', () => {
  it('asks as upstream does and gives the key with a clean chain', async () => {
    const w = new World();
    const { got } = await w.begin();
    const headed = CHAIN.replace('-----\n', '-----\nNote: x\n\n');
    await w.issue(`words before\n${headed}words after`, HOUR, 2 * HOUR);
    const { keyPem, chainPem, refreshAtMs } = await got;
    assert.equal(chainPem, CHAIN);
    assert.equal(refreshAtMs, Date.UTC(2026, 0, 1) + HOUR);
    const { stubPKCS10Request, ...spec } = w.bodies[0]?.['spec'] ?? {};
    const { publicKey } = readSigningRequest(
      pem('CERTIFICATE REQUEST', Buffer.from(String(stubPKCS10Request), 'base64')),
    );
    assert.ok(createPublicKey(createPrivateKey(keyPem)).equals(publicKey));
    assert.deepEqual(spec, {
      signerName: 'example.com/mesh',
      podName: 'p',
      podUID: 'U',
      serviceAccountName: 'sa',
      serviceAccountUID: 'uid of sa',
      nodeName: 'n1',
      nodeUID: 'node uid',
      maxExpirationSeconds: 7200,
      unverifiedUserAnnotations: { 'example.com/a': 'b' },
    });
    assert.deepEqual(w.bodies[0]?.['metadata'], {
      namespace: 'ns',
      generateName: 'req-',
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'U' }],
    });
    assert.deepEqual(await w.get(), { keyPem, chainPem, refreshAtMs }, 'the same until it is time');
    assert.equal(w.bodies.length, 1);
    assert.deepEqual([...w.certificates.counts()], [[{ signer_name: 'example.com/mesh', state: 'fresh' }, 1]]);
  });

  it('says after a while that nothing was issued yet, and that it was when it was', async () => {
    const w = new World();
    const { got } = await w.begin();
    await w.clock.advance(10_000);
    await assert.rejects(got, { message: 'credential bundle is not issued yet (PodCertificateRequest req-1)' });
    assert.deepEqual([...w.certificates.counts()], [[{ signer_name: 'example.com/mesh', state: 'not_yet_issued' }, 1]]);
    assert.deepEqual(w.changed, []);
    await w.issue(CHAIN, HOUR, 2 * HOUR);
    assert.deepEqual(w.changed, ['U']);
    assert.equal((await w.get()).chainPem, CHAIN);
    assert.equal(w.bodies.length, 1);
  });

  for (const [type, state] of [
    ['Denied', 'denied'],
    ['Failed', 'failed'],
  ] as const)
    it(`takes ${type} for an answer`, async () => {
      const w = new World();
      const { got } = await w.begin();
      await w.answer(type);
      const message = `PodCertificateRequest was permanently ${state}: reason="Why" message="because"`;
      await assert.rejects(got, { message });
      await assert.rejects(w.get(), { message });
      const did = type === 'Denied' ? 'was denied' : 'failed';
      assert.deepEqual(w.reported, [
        `Warning ${type} PodCertificateRequest ns/req-1 ${did}, reason="Why", message="because"`,
      ]);
      assert.equal(w.bodies.length, 1);
      assert.deepEqual([...w.certificates.counts()], [[{ signer_name: 'example.com/mesh', state }, 1]]);
    });

  it('renews when the signer said so, and keeps the old one until the new one is there', async () => {
    const w = new World(0.5);
    const { got } = await w.begin();
    await w.issue(CHAIN, HOUR, 2 * HOUR);
    const first = await got;
    assert.equal(first.refreshAtMs, Date.UTC(2026, 0, 1) + HOUR + 150_000, 'half of five minutes later');
    await w.clock.advance(HOUR + 150_000);
    w.isDown = true;
    const kept = await w.get();
    assert.equal(kept.keyPem, first.keyPem);
    assert.ok(kept.refreshAtMs <= w.clock.now() + 60_000, 'looked at again soon');
    w.isDown = false;
    assert.equal((await w.get()).keyPem, first.keyPem);
    assert.equal((await w.get()).keyPem, first.keyPem);
    assert.equal(w.bodies.length, 2, 'one request at a time');
    await w.issue(pem('CERTIFICATE', Buffer.from('second')), HOUR, 2 * HOUR);
    assert.deepEqual(w.changed, ['U']);
    const second = await w.get();
    assert.notEqual(second.keyPem, first.keyPem, 'with a key of its own');
    assert.equal(second.chainPem, pem('CERTIFICATE', Buffer.from('second')));
  });

  it('tells once that renewal is overdue, and once that the certificate expired', async () => {
    const w = new World();
    const { got } = await w.begin();
    await w.issue(CHAIN, HOUR, 2 * HOUR);
    await got;
    for (const ms of [HOUR, 599_000, 2_000, 60_000, HOUR, 60_000]) {
      await w.clock.advance(ms);
      await w.get();
    }
    assert.deepEqual(w.reported, [
      'Warning CertificateOverdueForRefresh PodCertificate refresh overdue',
      'Warning CertificateExpired PodCertificate expired',
    ]);
    assert.deepEqual([...w.certificates.counts()], [[{ signer_name: 'example.com/mesh', state: 'expired' }, 1]]);
  });

  it('asks again when its request was deleted, and after the pod was forgotten', async () => {
    const w = new World();
    const { got } = await w.begin();
    await w.remove();
    await assert.rejects(got, { message: 'credential bundle is not issued yet' });
    const { got: again } = await w.begin();
    await w.issue(CHAIN, HOUR, 2 * HOUR);
    await again;
    assert.equal(w.bodies.length, 2);
    w.certificates.forgetPod('U');
    assert.deepEqual([...w.certificates.counts()], []);
  });
});
