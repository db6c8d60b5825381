// Certificates for pods, with a signer in the cluster: every file a pod can ask for, every kind of key, renewal, refusal.
import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import type { KubeObject } from '../../src/core/meta.ts';
import type { Pod, PodCertificateProjection } from '../../src/core/pod.ts';
import { apiTime } from '../../src/core/time.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import { POD_CERTIFICATE_REQUESTS, type PodCertificateRequest } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { issueCertificate, type Authority } from '../../src/lib/x509/certificate.ts';
import { readSigningRequest } from '../../src/lib/x509/csr.ts';
import { pem } from '../../src/lib/x509/der.ts';
import { apiServerKind } from '../harness/api-server.ts';
import { newAuthority } from '../harness/authorities.ts';
import type { TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';
import { container, never, Scene } from './scene.ts';

const SIGNER = 'example.com/mesh';
/** Lives of seconds: no real API server takes those. */
const BRIEF = 'example.com/brief';
const STRICT = 'example.com/strict';
const KEY_TYPES = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'];

type Spec = PodCertificateRequest['spec'] & {
  readonly podName: string;
  readonly serviceAccountName: string;
  readonly stubPKCS10Request: string;
};

/** Answers every request on the node until it is stopped. */
class Signer {
  readonly authority: Authority = newAuthority('mesh');
  readonly #node: TestNode;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(node: TestNode) {
    this.#node = node;
  }

  start(): void {
    const deps = { client: this.#node.client, clock: systemClock, log: silentLogger };
    const requests = new Reflector<PodCertificateRequest>(deps, { name: 'signer', resource: POD_CERTIFICATE_REQUESTS });
    requests.subscribe((changes) => {
      for (const { after } of changes)
        if (after !== undefined && (after.status?.conditions ?? []).length === 0) void this.#answer(after);
    });
    this.#running = requests.run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #answer({ metadata, spec }: PodCertificateRequest): Promise<void> {
    const now = Math.floor(Date.now() / 1000) * 1000;
    const condition = (type: string, reason: string, message: string): object => ({
      conditions: [{ type, status: 'True', reason, message, lastTransitionTime: apiTime(now) }],
    });
    const status =
      spec.signerName === STRICT
        ? condition('Denied', 'UnsupportedKeyType', 'use ECDSAP256')
        : { ...condition('Issued', 'Issued', 'here it is'), ...this.#issue(spec as Spec, now) };
    const { namespace = '', name } = metadata;
    await this.#node.client.patch(
      POD_CERTIFICATE_REQUESTS,
      { namespace, name, subresource: 'status' },
      { status },
      never,
    );
  }

  #issue(spec: Spec, now: number): object {
    const [refreshMs, lifeMs] = spec.signerName === BRIEF ? [2000, 6000] : [1_800_000, 3_600_000];
    const stub = Buffer.from(spec.stubPKCS10Request, 'base64');
    const leaf = issueCertificate(this.authority, {
      subject: { commonName: `${spec.serviceAccountName}/${spec.podName}` },
      publicKey: readSigningRequest(pem('CERTIFICATE REQUEST', stub)).publicKey,
      usages: ['clientAuth'],
      notBeforeMs: now,
      notAfterMs: now + lifeMs,
    });
    return {
      certificateChain: leaf + this.authority.certificatePem,
      notBefore: apiTime(now),
      beginRefreshAt: apiTime(now + refreshMs),
      notAfter: apiTime(now + lifeMs),
    };
  }
}

function mounting(s: Scene, name: string, ...wanted: PodCertificateProjection[]): Promise<Pod> {
  const sources = wanted.map((podCertificate) => ({ podCertificate }));
  return s.pod(name, {
    volumes: [{ name: 'certs', projected: { sources } }],
    containers: [container('main', { volumeMounts: [{ name: 'certs', mountPath: '/certs' }] })],
  });
}

/** The leaf in a text of key and chain, which must belong together. */
function leafOf(keyPem: string, chainPem: string): X509Certificate {
  const leaf = new X509Certificate(chainPem);
  assert.ok(createPublicKey(createPrivateKey(keyPem)).equals(leaf.publicKey), 'the certificate is for this key');
  return leaf;
}

export function podCertificateSuite(node: () => TestNode): void {
  const withSigner = async (work: (signer: Signer) => Promise<void>): Promise<void> => {
    const signer = new Signer(node());
    signer.start();
    try {
      await work(signer);
    } finally {
      await signer.stop();
    }
  };

  describe('pod certificates', { concurrency: 1 }, () => {
    it('come as a bundle or as two files, for every kind of key', () =>
      withSigner(async ({ authority }) => {
        const s = await Scene.open(node(), 'certs');
        const bundles = KEY_TYPES.map((keyType) => ({ signerName: SIGNER, keyType, credentialBundlePath: keyType }));
        const apart = { keyPath: 'key.pem', certificateChainPath: 'chain.pem' };
        await mounting(s, 'p', ...bundles, { signerName: SIGNER, keyType: 'ECDSAP256', ...apart });
        const pod = await s.ready('p');
        for (const keyType of KEY_TYPES) {
          const text = await s.exec(pod, `cat /certs/${keyType}`);
          const [keyPem = '', ...chain] = text.split(/(?=-----BEGIN)/);
          assert.match(keyPem, /^-----BEGIN PRIVATE KEY-----\n/, keyType);
          assert.equal(chain.length, 2, keyType);
          assert.equal(leafOf(keyPem, chain.join('')).subject, 'CN=default/p', keyType);
          assert.equal(chain[1], authority.certificatePem);
        }
        const chain = await s.exec(pod, 'cat /certs/chain.pem');
        leafOf(await s.exec(pod, 'cat /certs/key.pem'), chain);
        assert.equal((await s.exec(pod, 'stat -Lc %a /certs/key.pem')).trim(), '644', 'the default mode');
        await s.delete('p');
        await s.gone('p');
      }));

    it('keep a pod without one when the signer says no, and say why', () =>
      withSigner(async () => {
        const s = await Scene.open(node(), 'certs-no');
        const pod = await mounting(s, 'p', { signerName: STRICT, keyType: 'RSA3072', keyPath: 'key' });
        const denied = await s.event(pod, 'Denied');
        assert.match(
          denied.message ?? '',
          /^PodCertificateRequest certs-no\/req-\w+ was denied, reason="UnsupportedKeyType", message="use ECDSAP256"$/,
        );
        const failed = await s.event(pod, 'FailedMount');
        assert.match(failed.message ?? '', /PodCertificateRequest was permanently denied: reason="UnsupportedKeyType"/);
        await s.delete('p');
        await s.gone('p');
      }));

    it('are renewed in the running pod, with a new key', { skip: isReal() }, () =>
      withSigner(async () => {
        const s = await Scene.open(node(), 'certs-brief');
        await mounting(s, 'p', { signerName: BRIEF, keyType: 'ECDSAP256', credentialBundlePath: 'bundle' });
        const pod = await s.ready('p');
        const first = await s.exec(pod, 'cat /certs/bundle');
        const renewed = async (): Promise<string | false> => {
          const now = await s.exec(pod, 'cat /certs/bundle');
          return now !== first && now;
        };
        const after = await until('it has another', renewed);
        const leaf = leafOf(after, after.slice(after.indexOf('-----BEGIN CERT')));
        const old = new X509Certificate(first.slice(first.indexOf('-----BEGIN CERT')));
        assert.ok(Date.parse(leaf.validTo) > Date.parse(old.validTo));
        assert.ok(!leaf.publicKey.equals(old.publicKey));
        await s.delete('p');
        await s.gone('p');
        const left = async (): Promise<boolean> => {
          const { items } = await node().client.list<KubeObject>(
            POD_CERTIFICATE_REQUESTS,
            { namespace: 'certs-brief' },
            never,
          );
          return items.length === 0;
        };
        if (node().api.hasControllers) await until('its requests go with the pod', left);
      }),
    );
  });
}

const isReal = (): string | false =>
  apiServerKind() === 'real' && 'a real API server takes no certificates that live for seconds';
